import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import type { ImageProvider } from '@nodepool-builder/image-builder';
import { FakeImageProvider } from '@nodepool-builder/image-builder/testing';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { OrphanedUploads } from '../../src/jobs/orphaned-uploads.ts';
import { type UploadRecord, UploadRecords } from '../../src/jobs/upload-records.ts';
import { uploadRecord } from './upload-record.ts';

const GRACE = 120_000;

/** A provider that records discards; `answer` decides how they end. */
class DiscardingProvider extends FakeImageProvider {
  readonly discarded: string[] = [];
  answer: () => Promise<void> = () => Promise.resolve();

  override async discard(uploadId: string): Promise<void> {
    this.discarded.push(uploadId);
    await this.answer();
  }
}

interface Site {
  readonly records: UploadRecords;
  readonly orphaned: OrphanedUploads;
  readonly provider: DiscardingProvider;
  readonly providers: Map<string, ImageProvider>;
  readonly logger: RecordingLogger;
  /** Advances the clock and waits for due discards. */
  readonly pass: (milliseconds: number) => Promise<void>;
}

async function site(t: TestContext, ...uploads: readonly UploadRecord[]): Promise<Site> {
  const logger = new RecordingLogger();
  const records = await UploadRecords.open(temporaryDirectory(t), logger);
  for (const upload of uploads) await records.put(upload);
  const provider = new DiscardingProvider({ name: 'cloud' });
  const providers = new Map<string, ImageProvider>([['cloud', provider]]);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const orphaned = new OrphanedUploads({ records, provider: (name) => providers.get(name), logger });
  for (const upload of uploads) orphaned.add(upload);
  return {
    records,
    orphaned,
    provider,
    providers,
    logger,
    pass: async (milliseconds) => {
      t.mock.timers.tick(milliseconds);
      await orphaned.idle();
    },
  };
}

it('an upload whose job does not come back within two minutes is discarded', async (t) => {
  const { records, provider, pass } = await site(t, uploadRecord());
  await pass(GRACE - 1);
  assert.deepEqual(provider.discarded, []);
  await pass(1);
  assert.deepEqual(provider.discarded, ['upload-1']);
  assert.deepEqual(records.all, []);
});

it('an upload that is reclaimed in time stays', async (t) => {
  const { records, provider, orphaned, pass } = await site(
    t,
    uploadRecord(),
    uploadRecord({ 'upload-id': 'upload-2' }),
  );
  await orphaned.reclaim(uploadRecord());
  await pass(GRACE);
  assert.deepEqual(provider.discarded, ['upload-2']);
  assert.deepEqual(records.all, [uploadRecord()]);
});

it('reclaim waits for a running discard', async (t) => {
  const { provider, orphaned, records, pass } = await site(t, uploadRecord());
  const started = Promise.withResolvers<void>();
  const discard = Promise.withResolvers<void>();
  provider.answer = () => {
    started.resolve();
    return discard.promise;
  };
  const passed = pass(GRACE);
  await started.promise;
  const reclaimed = orphaned.reclaim(uploadRecord()).then(() => records.all.length);
  discard.resolve();
  assert.equal(await reclaimed, 0);
  await passed;
});

it('an image whose result may have arrived stays, with a warning', async (t) => {
  const { records, provider, logger, pass } = await site(t, uploadRecord({ 'external-id': 'uuid' }));
  await pass(GRACE);
  assert.deepEqual(provider.discarded, []);
  assert.deepEqual(records.all, []);
  assert.match(logger.lines[0] ?? '', /^warn upload of 0001 to cloud.*: image uuid stays/);
});

it('while the cloud is unreachable, discards are retried with growing pauses', async (t) => {
  const { records, provider, logger, pass } = await site(t, uploadRecord());
  provider.answer = () => Promise.reject(new Error('503'));
  await pass(GRACE);
  for (const pause of [10_000, 20_000, 40_000]) await pass(pause);
  assert.equal(provider.discarded.length, 4);
  assert.match(logger.lines[0] ?? '', /^warn .*retried later: 503/);
  provider.answer = () => Promise.resolve();
  await pass(79_999);
  assert.equal(provider.discarded.length, 4);
  await pass(1);
  assert.equal(provider.discarded.length, 5);
  assert.deepEqual(records.all, []);
});

it('an upload to a provider that is no longer configured stays on record until it is configured again', async (t) => {
  const { records, orphaned, provider, providers, logger, pass } = await site(t, uploadRecord());
  providers.clear();
  await pass(GRACE);
  await pass(GRACE);
  assert.deepEqual(logger.lines.length, 1, 'one warning');
  assert.match(logger.lines[0] ?? '', /^warn provider "cloud" is no longer configured/);
  assert.equal(records.all.length, 1);
  providers.set('cloud', provider);
  orphaned.retry();
  await orphaned.idle();
  assert.deepEqual(records.all, []);
});

it('an unreachable provider does not delay others', async (t) => {
  const { records, provider, providers, pass } = await site(
    t,
    uploadRecord(),
    uploadRecord({ provider: 'other' }),
  );
  provider.answer = () => Promise.reject(new Error('503'));
  providers.set('other', new FakeImageProvider({ name: 'other' }));
  await pass(GRACE);
  assert.deepEqual(records.all, [uploadRecord()]);
});

it('when the builder stops, orphaned uploads stay on record', async (t) => {
  const { records, orphaned, provider, pass } = await site(t, uploadRecord());
  await orphaned.close();
  await pass(GRACE);
  assert.deepEqual(provider.discarded, []);
  assert.equal(records.all.length, 1);
});
