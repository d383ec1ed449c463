/** Uploads an image to a double in its own process, for `resume.test.ts`: `node killed-upload.ts SETTINGS`. */
import { AzureProvider } from '../src/azure-provider.ts';

const { account, token, options, request } = JSON.parse(process.argv[2] ?? '{}');
const log = (): void => {};
const logger = { debug: log, info: log, warn: log, error: log };
const credential = { getToken: () => Promise.resolve(token) };
const provider = new AzureProvider({
  ...options,
  logger,
  account: () => Promise.resolve({ ...account, credential: () => Promise.resolve(credential) }),
});
await provider.upload(request);
