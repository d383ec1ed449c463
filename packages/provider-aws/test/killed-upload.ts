/** Uploads an image to a double in its own process, for `resume.test.ts`: `node killed-upload.ts SETTINGS`. */
import { AwsProvider } from '../src/aws-provider.ts';
import { requestFor } from './disk.ts';

const { options, path } = JSON.parse(process.argv[2] ?? '{}');
const log = (): void => {};
const logger = { debug: log, info: log, warn: log, error: log };
await new AwsProvider({ ...options, logger }).upload(requestFor(path));
