// Not a unit test: it starts flock.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { ImageRepository } from '@nodepool-builder/image-builder';
import { RecordingLogger } from '../../../../../test/fixtures/recording-logger.ts';
import { temporaryDirectory } from '../../../../../test/fixtures/scratch-directory.ts';
import { runDeleteJob } from '../../../src/daemon/jobs/delete-job.ts';
import { fakeJob } from './fake-job.ts';

it('deleting an image whose files are gone succeeds (COMPAT 1.5)', async (t) => {
  const repository = await ImageRepository.open(temporaryDirectory(t));
  t.after(() => repository.close());
  const context = { repository, logger: () => new RecordingLogger() };
  assert.equal(await runDeleteJob(context, fakeJob('image-delete:0000000007', '""')), undefined);
});
