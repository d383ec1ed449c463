/** Uploads an image and kills its own process after a request: `node killed-upload.ts SETTINGS`. */
import { GceProvider } from '../src/gce-provider.ts';

const { options, request, step } = JSON.parse(process.argv[2] ?? '{}');
const log = (): void => {};
let seen = 0;
const provider = new GceProvider({
  ...options,
  session: {
    ...options.session,
    onTask(task: string) {
      if (task === step.task && ++seen === step.count) process.kill(process.pid, 'SIGKILL');
    },
  },
  logger: { debug: log, info: log, warn: log, error: log },
});
await provider.upload(request);
