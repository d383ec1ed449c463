import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { ImageRepository } from '@nodepool-builder/image-builder';
import { FakeImageProvider } from '@nodepool-builder/image-builder/testing';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import { RecordingLogger } from '../../../image-builder/test/recording-logger.ts';
import { toProvider } from '../../src/configuration/provider.ts';
import { AbandonedUploads } from '../../src/jobs/abandoned-uploads.ts';
import { Statistics } from '../../src/jobs/statistics.ts';
import { runUploadJob } from '../../src/jobs/upload-job.ts';
import { UploadLedger } from '../../src/jobs/upload-ledger.ts';
import { UploadRecord } from '../../src/jobs/upload-record.ts';
import { temporaryDirectory } from '../temporary-directory.ts';
import { fakeJob } from './fake-job.ts';

it('the hook gets the file that was carried; of a snapshot that was claimed, one that is here', async (t) => {
  const directory = temporaryDirectory(t);
  for (const format of ['qcow2', 'raw']) writeFileSync(join(directory, `1.${format}`), 'an image');
  const repository = await ImageRepository.open(directory);
  undoAfter(t, () => repository.close());
  const logger = new RecordingLogger();
  const ledger = await UploadLedger.open(join(directory, 'uploads'), logger);
  const abandoned = new AbandonedUploads({ ledger, provider: () => undefined, logger });
  const images = [{ name: 'debian' }];
  const source = { name: 'fake', type: 'directory', directory, images, 'post-upload-hook': 'true' } as const;
  const configuration = toProvider({ ...source, rate: 0 }, undefined, (path) => path);
  const provider = new FakeImageProvider({ formats: ['raw'] });
  const snapshot = { provider: 'fake', externalId: 'snapshot' };
  for (const [claimed, format] of [
    [undefined, 'raw'],
    [snapshot, 'qcow2'],
  ] as const) {
    const context = {
      repository,
      providers: new Map([['fake', { configuration, provider }]]),
      takesNoImages: () => false,
      record: new UploadRecord(ledger, abandoned, logger),
      snapshots: { find: () => snapshot, claim: async () => claimed },
      statistics: new Statistics(undefined),
      logger: () => logger,
    };
    await runUploadJob(context, fakeJob('image-upload:1', '{"provider": "fake", "image-name": "debian"}'));
    const ran = logger.lines.findLast((line) => line.startsWith('info running the hook'));
    assert.equal(ran?.split(' ').at(-1), join(directory, `1.${format}`));
  }
});
