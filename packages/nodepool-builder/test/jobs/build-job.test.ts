import assert from 'node:assert/strict';
import { it } from 'node:test';
import { JobFailure } from '@nodepool-builder/gearman-node';
import { ImageRepository } from '@nodepool-builder/image-builder';
import { RecordingLogger } from '../../../image-builder/test/recording-logger.ts';
import { runBuildJob } from '../../src/jobs/build-job.ts';
import { Statistics } from '../../src/jobs/statistics.ts';
import { temporaryDirectory } from '../temporary-directory.ts';
import { fakeJob } from './fake-job.ts';

it('COMPAT 1.5: a disk image that is not configured any more is WORK_FAIL', async (t) => {
  const repository = await ImageRepository.open(temporaryDirectory(t));
  t.after(() => repository.close());
  const context = {
    repository,
    builder: () => undefined,
    buildLogDir: undefined,
    buildLogRetention: 7,
    statistics: new Statistics(undefined),
    logger: () => new RecordingLogger(),
    isOffered: () => Promise.resolve(false),
    offered: () => Promise.resolve(),
  };
  await assert.rejects(
    runBuildJob(context, fakeJob('image-build:debian', '{"image-id": "1"}')),
    (error) => error instanceof JobFailure && /"debian" is not configured here/.test(error.message),
  );
});
