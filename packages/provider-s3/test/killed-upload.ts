/** Uploads an image and kills its own process after a request: `node killed-upload.ts SETTINGS`. */
import { S3Provider } from '../src/s3-provider.ts';

const { entry, request, step } = JSON.parse(process.argv[2] ?? '{}');
const log = (): void => {};
let seen = 0;
const provider = new S3Provider({
  entry,
  formats: ['raw'],
  logger: { debug: log, info: log, warn: log, error: log },
  onTask(task) {
    if (task === step.task && ++seen === step.count) process.kill(process.pid, 'SIGKILL');
  },
});
await provider.upload(request);
