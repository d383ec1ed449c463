import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import type { UploadResult } from '@nodepool-builder/image-builder';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { OrphanedUploads } from '../../src/jobs/orphaned-uploads.ts';
import { UploadRecords } from '../../src/jobs/upload-records.ts';
import { type TrackedJob, UploadTracker } from '../../src/jobs/upload-tracker.ts';
import { uploadRecord } from './upload-record.ts';

/** A job whose connection can be lost, and whose end is acknowledged on demand. */
class FakeJob implements TrackedJob {
  readonly #lost = new AbortController();
  readonly #stopped = new AbortController();
  readonly #acknowledged = Promise.withResolvers<void>();
  readonly connectionLost: AbortSignal = this.#lost.signal;
  readonly signal: AbortSignal = this.#stopped.signal;
  readonly acknowledged: Promise<void> = this.#acknowledged.promise;

  lose(): void {
    this.#lost.abort();
    this.#acknowledged.resolve();
  }

  acknowledge(): void {
    this.#acknowledged.resolve();
  }

  stop(): void {
    this.#stopped.abort();
  }
}

/** Records the ids of orphaned uploads. */
class RecordingOrphaned extends OrphanedUploads {
  readonly added: string[] = [];
  override add(entry: { 'upload-id': string }): void {
    this.added.push(entry['upload-id']);
  }
}

async function site(
  t: TestContext,
): Promise<{ records: UploadRecords; orphaned: RecordingOrphaned; tracker: UploadTracker }> {
  const logger = new RecordingLogger();
  const records = await UploadRecords.open(temporaryDirectory(t), logger);
  const orphaned = new RecordingOrphaned({ records, provider: () => undefined, logger });
  return { records, orphaned, tracker: new UploadTracker(records, orphaned, logger) };
}

const DONE: UploadResult = { externalId: 'uuid' };

/** Waits for all pending changes of records. */
async function settle(records: UploadRecords): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
  await records.put(uploadRecord({ provider: 'unrelated' })); // after all other changes
  await records.remove({ provider: 'unrelated', 'upload-id': 'upload-1' });
}

it('an upload is on record from before its start until its result is acknowledged', async (t) => {
  const { records, orphaned, tracker } = await site(t);
  const job = new FakeJob();
  await tracker.run(job, uploadRecord(), async (entry) => {
    assert.deepEqual(records.all, [entry]);
    return await Promise.resolve(DONE);
  });
  assert.deepEqual(records.all, [uploadRecord({ 'external-id': 'uuid' })]);
  job.acknowledge();
  await settle(records);
  assert.deepEqual(records.all, []);
  assert.deepEqual(orphaned.added, []);
});

it('a further attempt is the same upload with the same name', async (t) => {
  const { records, tracker } = await site(t);
  await records.put(uploadRecord({ 'external-name': 'first', 'external-id': 'uuid' }));
  await tracker.run(new FakeJob(), uploadRecord({ 'external-name': 'second' }), async (entry) => {
    assert.deepEqual(entry, uploadRecord({ 'external-name': 'first' }));
    assert.deepEqual(records.all, [entry], 'its result counts as not sent');
    return await Promise.resolve(DONE);
  });
});

it('a second job for a running upload shares it', async (t) => {
  const { records, orphaned, tracker } = await site(t);
  const [lost, again] = [new FakeJob(), new FakeJob()];
  const result = Promise.withResolvers<UploadResult>();
  let starts = 0;
  const upload = (): Promise<UploadResult> => {
    starts += 1;
    return result.promise;
  };
  const results = [tracker.run(lost, uploadRecord(), upload)];
  lost.lose();
  results.push(tracker.run(again, uploadRecord(), upload));
  result.resolve(DONE);
  assert.deepEqual(await Promise.all(results), [DONE, DONE]);
  again.acknowledge();
  await settle(records);
  assert.equal(starts, 1);
  assert.deepEqual(orphaned.added, []);
  assert.deepEqual(records.all, []);
});

it('an upload is orphaned if the job server is lost before the result', async (t) => {
  const { records, orphaned, tracker } = await site(t);
  const job = new FakeJob();
  await tracker.run(job, uploadRecord(), async () => {
    job.lose();
    return await Promise.resolve(DONE);
  });
  assert.deepEqual(orphaned.added, ['upload-1']);
  assert.deepEqual(records.all, [uploadRecord()]);
});

it('an upload keeps its external-id if the job server is lost after the result', async (t) => {
  const { records, orphaned, tracker } = await site(t);
  const job = new FakeJob();
  await tracker.run(job, uploadRecord(), () => Promise.resolve(DONE));
  job.lose();
  await settle(records);
  assert.deepEqual(orphaned.added, ['upload-1']);
  assert.deepEqual(records.all, [uploadRecord({ 'external-id': 'uuid' })]);
});

it('a late end of an earlier job changes nothing', async (t) => {
  const { records, orphaned, tracker } = await site(t);
  const [first, again] = [new FakeJob(), new FakeJob()];
  await tracker.run(first, uploadRecord(), () => Promise.resolve(DONE));
  const second = Promise.withResolvers<UploadResult>();
  const running = tracker.run(again, uploadRecord(), () => second.promise);
  first.lose();
  await settle(records);
  assert.deepEqual(orphaned.added, []);
  assert.deepEqual(records.all, [uploadRecord()]);
  second.resolve(DONE);
  await running;
});

it('the record of an upload that failed for good is deleted, because the provider has cleaned up', async (t) => {
  const { records, orphaned, tracker } = await site(t);
  const failure = new Error('quota exceeded');
  await assert.rejects(
    tracker.run(new FakeJob(), uploadRecord(), () => Promise.reject(failure)),
    failure,
  );
  assert.deepEqual(records.all, []);
  assert.deepEqual(orphaned.added, []);
});

it('an upload that failed because the cloud was unreachable is orphaned', async (t) => {
  const { records, orphaned, tracker } = await site(t);
  const failure = Object.assign(new Error('503'), { retriable: true });
  await assert.rejects(tracker.run(new FakeJob(), uploadRecord(), () => Promise.reject(failure)));
  assert.deepEqual(orphaned.added, ['upload-1']);
  assert.deepEqual(records.all, [uploadRecord()]);
});

it('an upload that was aborted is orphaned', async (t) => {
  const { orphaned, tracker } = await site(t);
  const job = new FakeJob();
  await assert.rejects(
    tracker.run(job, uploadRecord(), () => {
      job.stop();
      return Promise.reject(new Error('aborted'));
    }),
  );
  assert.deepEqual(orphaned.added, ['upload-1']);
});
