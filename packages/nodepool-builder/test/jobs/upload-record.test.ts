import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import type { UploadResult } from '@nodepool-builder/image-builder';
import { RecordingLogger } from '../../../image-builder/test/recording-logger.ts';
import { AbandonedUploads } from '../../src/jobs/abandoned-uploads.ts';
import { UploadLedger } from '../../src/jobs/upload-ledger.ts';
import { type RecordedJob, UploadRecord } from '../../src/jobs/upload-record.ts';
import { temporaryDirectory } from '../temporary-directory.ts';
import { ledgerEntry } from './ledger-entry.ts';

/** A job whose server can be lost, and does not acknowledge until it is told to. */
class FakeJob implements RecordedJob {
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

/** Knows which uploads were given up. */
class RecordingAbandoned extends AbandonedUploads {
  readonly added: string[] = [];
  override add(entry: { 'upload-id': string }): void {
    this.added.push(entry['upload-id']);
  }
}

async function site(
  t: TestContext,
): Promise<{ ledger: UploadLedger; abandoned: RecordingAbandoned; record: UploadRecord }> {
  const logger = new RecordingLogger();
  const ledger = await UploadLedger.open(temporaryDirectory(t), logger);
  const abandoned = new RecordingAbandoned({ ledger, provider: () => undefined, logger });
  return { ledger, abandoned, record: new UploadRecord(ledger, abandoned, logger) };
}

const DONE: UploadResult = { externalId: 'uuid' };

/** Lets everything happen that does not wait for anything. */
async function settle(ledger: UploadLedger): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
  await ledger.put(ledgerEntry({ provider: 'unrelated' })); // behind every other change
  await ledger.remove({ provider: 'unrelated', 'upload-id': 'upload-1' });
}

it('an upload is on record before it begins, and until its answer was acknowledged', async (t) => {
  const { ledger, abandoned, record } = await site(t);
  const job = new FakeJob();
  await record.run(job, ledgerEntry(), async (entry) => {
    assert.deepEqual(ledger.entries, [entry]);
    return await Promise.resolve(DONE);
  });
  assert.deepEqual(ledger.entries, [ledgerEntry({ 'external-id': 'uuid' })]);
  job.acknowledge();
  await settle(ledger);
  assert.deepEqual(ledger.entries, []);
  assert.deepEqual(abandoned.added, []);
});

it('another try is the same upload, under the name of the first', async (t) => {
  const { ledger, record } = await site(t);
  await ledger.put(ledgerEntry({ 'external-name': 'first', 'external-id': 'uuid' }));
  await record.run(new FakeJob(), ledgerEntry({ 'external-name': 'second' }), async (entry) => {
    assert.deepEqual(entry, ledgerEntry({ 'external-name': 'first' }));
    assert.deepEqual(ledger.entries, [entry], 'it counts as not answered again');
    return await Promise.resolve(DONE);
  });
});

it('an upload that is asked for again while it runs is not begun twice', async (t) => {
  const { ledger, abandoned, record } = await site(t);
  const [lost, again] = [new FakeJob(), new FakeJob()];
  const upload = Promise.withResolvers<UploadResult>();
  let begun = 0;
  const carry = (): Promise<UploadResult> => {
    begun += 1;
    return upload.promise;
  };
  const results = [record.run(lost, ledgerEntry(), carry)];
  lost.lose();
  results.push(record.run(again, ledgerEntry(), carry));
  upload.resolve(DONE);
  assert.deepEqual(await Promise.all(results), [DONE, DONE]);
  again.acknowledge();
  await settle(ledger);
  assert.equal(begun, 1);
  assert.deepEqual(abandoned.added, []);
  assert.deepEqual(ledger.entries, []);
});

it('an upload whose job server was lost before the answer is given up, as not answered', async (t) => {
  const { ledger, abandoned, record } = await site(t);
  const job = new FakeJob();
  await record.run(job, ledgerEntry(), async () => {
    job.lose();
    return await Promise.resolve(DONE);
  });
  assert.deepEqual(abandoned.added, ['upload-1']);
  assert.deepEqual(ledger.entries, [ledgerEntry()]);
});

it('an upload whose job server was lost after the answer went out counts as answered', async (t) => {
  const { ledger, abandoned, record } = await site(t);
  const job = new FakeJob();
  await record.run(job, ledgerEntry(), () => Promise.resolve(DONE));
  job.lose();
  await settle(ledger);
  assert.deepEqual(abandoned.added, ['upload-1']);
  assert.deepEqual(ledger.entries, [ledgerEntry({ 'external-id': 'uuid' })]);
});

it('a late end of a job that came again meanwhile changes nothing', async (t) => {
  const { ledger, abandoned, record } = await site(t);
  const [first, again] = [new FakeJob(), new FakeJob()];
  await record.run(first, ledgerEntry(), () => Promise.resolve(DONE));
  const second = Promise.withResolvers<UploadResult>();
  const running = record.run(again, ledgerEntry(), () => second.promise);
  first.lose();
  await settle(ledger);
  assert.deepEqual(abandoned.added, []);
  assert.deepEqual(ledger.entries, [ledgerEntry()]);
  second.resolve(DONE);
  await running;
});

it('an upload that failed for good is forgotten: the provider removed what it left', async (t) => {
  const { ledger, abandoned, record } = await site(t);
  const failure = new Error('quota exceeded');
  await assert.rejects(
    record.run(new FakeJob(), ledgerEntry(), () => Promise.reject(failure)),
    failure,
  );
  assert.deepEqual(ledger.entries, []);
  assert.deepEqual(abandoned.added, []);
});

it('of an upload that failed as the cloud was away, what it left is still to be discarded', async (t) => {
  const { ledger, abandoned, record } = await site(t);
  const failure = Object.assign(new Error('503'), { retriable: true });
  await assert.rejects(record.run(new FakeJob(), ledgerEntry(), () => Promise.reject(failure)));
  assert.deepEqual(abandoned.added, ['upload-1']);
  assert.deepEqual(ledger.entries, [ledgerEntry()]);
});

it('of an upload that had to stop, too', async (t) => {
  const { abandoned, record } = await site(t);
  const job = new FakeJob();
  await assert.rejects(
    record.run(job, ledgerEntry(), () => {
      job.stop();
      return Promise.reject(new Error('aborted'));
    }),
  );
  assert.deepEqual(abandoned.added, ['upload-1']);
});
