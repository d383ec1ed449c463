import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { stopCancelledJob } from '../../src/daemon/stop-cancelled-job.ts';

test('a cancelled build with an invalid image-id is logged, and does not end the job server', async () => {
  const logger = new RecordingLogger();
  const payload = Buffer.from('{"image-id": {"toString": 1}}');
  const job = { handle: 'H:here:1', function: 'image-build:debian', unique: '', payload, isRunning: true };
  await stopCancelledJob(job, { host: '127.0.0.1', port: 1 }, logger);
  assert.match(logger.lines.join('\n'), /job H:here:1 of image-build:debian may still run: /);
});
