import assert from 'node:assert/strict';
import { mkdir, readdir, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import type { ImageProvider, UploadResult } from '@nodepool-builder/image-builder';
import { CloudError } from '@nodepool-builder/image-builder/module-kit';
import { FakeImageProvider } from '@nodepool-builder/image-builder/testing';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { recordName, type UploadRecord } from '../../src/jobs/upload-record.ts';
import { type UploadingJob, Uploads } from '../../src/jobs/uploads.ts';
import { readUploadRecords, uploadRecord, writeUploadRecord } from './upload-record.ts';

const GRACE = 120_000;

/** A job whose connection can be lost, and whose end is acknowledged on demand. */
class FakeJob implements UploadingJob {
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
  readonly uploads: Uploads;
  readonly provider: DiscardingProvider;
  readonly providers: Map<string, ImageProvider>;
  readonly logger: RecordingLogger;
  /** The end of each discard: true if it succeeded. */
  readonly discards: readonly boolean[];
  /** Path at which a directory makes all writes of a record fail. */
  readonly obstacle: (record: UploadRecord) => string;
  /** The records on disk. */
  readonly records: () => Promise<(UploadRecord | undefined)[]>;
  /** Waits for all pending changes of records. */
  readonly settle: () => Promise<void>;
  /** Advances the clock and waits for due discards. */
  readonly pass: (milliseconds: number) => Promise<void>;
}

/** Uploads, those on record being left by an earlier process. */
async function site(t: TestContext, ...onRecord: readonly UploadRecord[]): Promise<Site> {
  const directory = temporaryDirectory(t);
  for (const record of onRecord) await writeUploadRecord(directory, record);
  const logger = new RecordingLogger();
  const provider = new DiscardingProvider({ name: 'cloud' });
  const providers = new Map<string, ImageProvider>([['cloud', provider]]);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const discards: boolean[] = [];
  const uploads = await Uploads.open(directory, {
    provider: (name) => providers.get(name),
    logger,
    onDiscard: (_provider, isDiscarded) => discards.push(isDiscarded),
  });
  uploads.startGracePeriod();
  return {
    uploads,
    provider,
    providers,
    logger,
    discards,
    obstacle: (record) => join(directory, `${recordName(record)}.json.new`),
    records: () => readUploadRecords(directory),
    settle: async () => {
      await new Promise((resolve) => setImmediate(resolve));
      // Its changes come after all others, and it leaves no record.
      const unrelated = uploadRecord({ provider: 'unrelated' });
      await uploads.run(new FakeJob(), unrelated, () => Promise.reject(quotaExceeded())).catch(() => {});
    },
    pass: async (milliseconds) => {
      t.mock.timers.tick(milliseconds);
      await uploads.idle();
    },
  };
}

const DONE: UploadResult = { externalId: 'uuid' };
const quotaExceeded = (): Error => new CloudError('quota-exceeded', 'provider cloud', 'quota exceeded');
const succeed = (): Promise<UploadResult> => Promise.resolve(DONE);

describe('an upload with a job', () => {
  it('is on record from before its start until its result is acknowledged', async (t) => {
    const { uploads, records, settle, provider, pass } = await site(t);
    const job = new FakeJob();
    await uploads.run(job, uploadRecord(), async (record) => {
      assert.deepEqual(await records(), [record]);
      return DONE;
    });
    assert.deepEqual(await records(), [uploadRecord({ 'external-id': 'uuid' })]);
    job.acknowledge();
    await settle();
    assert.deepEqual(await records(), []);
    await pass(GRACE);
    assert.deepEqual(provider.discarded, []);
  });

  it('may have any id', async (t) => {
    const { uploads, records } = await site(t);
    for (const id of ['H:host:42', '../../etc/passwd', 'x'.repeat(500)]) {
      await uploads.run(new FakeJob(), uploadRecord({ 'upload-id': id }), succeed);
    }
    assert.equal((await records()).length, 3);
  });

  it('is another one in another provider', async (t) => {
    const { uploads, records } = await site(t);
    await uploads.run(new FakeJob(), uploadRecord(), succeed);
    const failed = uploads.run(new FakeJob(), uploadRecord({ provider: 'other' }), async () => {
      assert.equal((await records()).length, 2);
      throw quotaExceeded();
    });
    await assert.rejects(failed, /quota/);
    assert.deepEqual(await records(), [uploadRecord({ 'external-id': 'uuid' })]);
  });

  it('keeps its name in a further attempt', async (t) => {
    const earlier = uploadRecord({ 'external-name': 'first', 'external-id': 'uuid' });
    const { uploads, records } = await site(t, earlier);
    await uploads.run(new FakeJob(), uploadRecord({ 'external-name': 'second' }), async (record) => {
      assert.deepEqual(record, uploadRecord({ 'external-name': 'first' }));
      assert.deepEqual(await records(), [record], 'its result counts as not sent');
      return DONE;
    });
  });

  it('is shared by a second job', async (t) => {
    const { uploads, records, settle, provider, pass } = await site(t);
    const [lost, again] = [new FakeJob(), new FakeJob()];
    const result = Promise.withResolvers<UploadResult>();
    let starts = 0;
    const work = (): Promise<UploadResult> => {
      starts += 1;
      return result.promise;
    };
    const results = [uploads.run(lost, uploadRecord(), work)];
    lost.lose();
    results.push(uploads.run(again, uploadRecord(), work));
    result.resolve(DONE);
    assert.deepEqual(await Promise.all(results), [DONE, DONE]);
    again.acknowledge();
    await settle();
    assert.equal(starts, 1);
    assert.deepEqual(await records(), []);
    await pass(GRACE);
    assert.deepEqual(provider.discarded, []);
  });

  it('is an orphan if the job server is lost before the result', async (t) => {
    const { uploads, records, provider, pass } = await site(t);
    const job = new FakeJob();
    await uploads.run(job, uploadRecord(), () => {
      job.lose();
      return succeed();
    });
    assert.deepEqual(await records(), [uploadRecord()]);
    await pass(GRACE);
    assert.deepEqual(provider.discarded, ['upload-1']);
  });

  it('keeps its external-id if the job server is lost after the result', async (t) => {
    const { uploads, records, settle } = await site(t);
    const job = new FakeJob();
    await uploads.run(job, uploadRecord(), succeed);
    job.lose();
    await settle();
    assert.deepEqual(await records(), [uploadRecord({ 'external-id': 'uuid' })]);
  });

  it('does not change at the late end of an earlier job', async (t) => {
    const { uploads, records, settle, provider, pass } = await site(t);
    const [first, again] = [new FakeJob(), new FakeJob()];
    await uploads.run(first, uploadRecord(), succeed);
    const second = Promise.withResolvers<UploadResult>();
    const running = uploads.run(again, uploadRecord(), () => second.promise);
    first.lose();
    await settle();
    assert.deepEqual(await records(), [uploadRecord()]);
    await pass(GRACE);
    assert.deepEqual(provider.discarded, []);
    second.resolve(DONE);
    await running;
  });

  it('leaves no record if it failed for good, because the provider has cleaned up', async (t) => {
    const { uploads, records, provider, pass } = await site(t);
    const failure = quotaExceeded();
    await assert.rejects(
      uploads.run(new FakeJob(), uploadRecord(), () => Promise.reject(failure)),
      failure,
    );
    assert.deepEqual(await records(), []);
    await pass(GRACE);
    assert.deepEqual(provider.discarded, []);
  });

  it('may start again while the record of its failure is being removed', async (t) => {
    const { uploads, records } = await site(t);
    const result = Promise.withResolvers<UploadResult>();
    let starts = 0;
    const again = (): Promise<UploadResult> =>
      uploads.run(new FakeJob(), uploadRecord(), () => {
        starts += 1;
        return result.promise;
      });
    const second = Promise.withResolvers<UploadResult>();
    const first = uploads.run(new FakeJob(), uploadRecord(), () => {
      process.nextTick(() => second.resolve(again())); // by then the removal has begun
      return Promise.reject(quotaExceeded());
    });
    await assert.rejects(first, /quota/);
    const third = again();
    result.resolve(DONE);
    assert.deepEqual(await Promise.all([second.promise, third]), [DONE, DONE]);
    assert.equal(starts, 1);
    assert.deepEqual(await records(), [uploadRecord({ 'external-id': 'uuid' })]);
  });

  it('is an orphan after an error that its provider did not expect', async (t) => {
    const { uploads, records, provider, pass } = await site(t);
    const failure = Object.assign(new Error('no such file'), { code: 'ENOENT' });
    await assert.rejects(uploads.run(new FakeJob(), uploadRecord(), () => Promise.reject(failure)));
    assert.deepEqual(await records(), [uploadRecord()]);
    await pass(GRACE);
    assert.deepEqual(provider.discarded, ['upload-1']);
  });

  it('is an orphan if the cloud was unreachable', async (t) => {
    const { uploads, records, provider, pass } = await site(t);
    const failure = Object.assign(new Error('503'), { retriable: true });
    await assert.rejects(uploads.run(new FakeJob(), uploadRecord(), () => Promise.reject(failure)));
    assert.deepEqual(await records(), [uploadRecord()]);
    await pass(GRACE);
    assert.deepEqual(provider.discarded, ['upload-1']);
  });

  it('is an orphan if its result cannot be recorded, because no client will know the image', async (t) => {
    const { uploads, records, provider, pass, obstacle } = await site(t);
    const unrecorded = uploads.run(new FakeJob(), uploadRecord(), async (record) => {
      await mkdir(obstacle(record));
      return DONE;
    });
    await assert.rejects(unrecorded, /^JobError: the record of the upload of 0001 cannot be written: EISDIR/);
    assert.deepEqual(await records(), [uploadRecord()]);
    await rmdir(obstacle(uploadRecord()));
    await pass(GRACE);
    assert.deepEqual(provider.discarded, ['upload-1']);
    assert.deepEqual(await records(), []);
  });

  it('stays an orphan if a further attempt cannot be recorded', async (t) => {
    const { uploads, records, provider, pass, obstacle } = await site(t, uploadRecord());
    await mkdir(obstacle(uploadRecord()));
    await assert.rejects(uploads.run(new FakeJob(), uploadRecord(), succeed), /cannot be written/);
    await rmdir(obstacle(uploadRecord()));
    assert.deepEqual(await records(), [uploadRecord()]);
    await pass(GRACE);
    assert.deepEqual(provider.discarded, ['upload-1']);
  });

  it('is an orphan if it was aborted', async (t) => {
    const { uploads, records } = await site(t);
    const job = new FakeJob();
    const aborted = uploads.run(job, uploadRecord(), () => {
      job.stop();
      return Promise.reject(new Error('aborted'));
    });
    await assert.rejects(aborted, /aborted/);
    assert.deepEqual(await records(), [uploadRecord()]);
  });
});

describe('an orphaned upload', () => {
  it('is discarded if its job does not come back within two minutes', async (t) => {
    const { records, provider, pass } = await site(t, uploadRecord());
    await pass(GRACE - 1);
    assert.deepEqual(provider.discarded, []);
    await pass(1);
    assert.deepEqual(provider.discarded, ['upload-1']);
    assert.deepEqual(await records(), []);
  });

  it('stays if its job comes back in time', async (t) => {
    const other = uploadRecord({ 'upload-id': 'upload-2' });
    const { uploads, records, provider, pass } = await site(t, uploadRecord(), other);
    await uploads.run(new FakeJob(), uploadRecord(), succeed);
    await pass(GRACE);
    assert.deepEqual(provider.discarded, ['upload-2']);
    assert.deepEqual(await records(), [uploadRecord({ 'external-id': 'uuid' })]);
  });

  it('starts from scratch if its job comes back during its discard', async (t) => {
    const { provider, uploads, records, pass } = await site(t, uploadRecord());
    const started = Promise.withResolvers<void>();
    const discard = Promise.withResolvers<void>();
    provider.answer = () => {
      started.resolve();
      return discard.promise;
    };
    const passed = pass(GRACE);
    await started.promise;
    const fresh = uploadRecord({ 'external-name': 'second' });
    const running = uploads.run(new FakeJob(), fresh, async (record) => {
      assert.deepEqual(record, fresh);
      assert.deepEqual(await records(), [fresh]);
      return DONE;
    });
    discard.resolve();
    await running;
    await passed;
    assert.deepEqual(await records(), [{ ...fresh, 'external-id': 'uuid' }]);
  });

  it('stays in the provider, with a warning, if its result may have arrived', async (t) => {
    const { records, provider, logger, pass } = await site(t, uploadRecord({ 'external-id': 'uuid' }));
    await pass(GRACE);
    assert.deepEqual(provider.discarded, []);
    assert.deepEqual(await records(), []);
    assert.match(logger.lines[0] ?? '', /^warn upload of 0001 to cloud.*: image uuid stays/);
  });

  it('is discarded in retries with growing pauses while the cloud is unreachable', async (t) => {
    const { uploads, discards, records, provider, logger, pass } = await site(t, uploadRecord());
    assert.deepEqual([...uploads.orphans], [['cloud', 1]]);
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
    assert.deepEqual(await records(), []);
    assert.deepEqual(discards, [false, false, false, false, true]);
    assert.deepEqual([...uploads.orphans], []);
  });

  it('stays on record while its provider is not configured', async (t) => {
    const { records, uploads, provider, providers, logger, pass } = await site(t, uploadRecord());
    providers.clear();
    await pass(GRACE);
    await pass(GRACE);
    assert.deepEqual(logger.lines.length, 1, 'one warning');
    assert.match(logger.lines[0] ?? '', /^warn provider "cloud" is no longer configured/);
    assert.equal((await records()).length, 1);
    providers.set('cloud', provider);
    uploads.retry();
    await uploads.idle();
    assert.deepEqual(await records(), []);
  });

  it('whose provider cannot be opened is discarded later', async (t) => {
    const { records, providers, provider, logger, pass } = await site(t, uploadRecord());
    providers.get = () => assert.fail('its module is broken');
    await pass(GRACE);
    assert.match(logger.lines[0] ?? '', /^warn .*retried later: its module is broken/);
    providers.get = () => provider;
    await pass(10_000);
    assert.deepEqual(await records(), []);
  });

  it('in an unreachable provider does not delay others', async (t) => {
    const other = uploadRecord({ provider: 'other' });
    const { records, provider, providers, pass } = await site(t, uploadRecord(), other);
    provider.answer = () => Promise.reject(new Error('503'));
    providers.set('other', new FakeImageProvider({ name: 'other' }));
    await pass(GRACE);
    assert.deepEqual(await records(), [uploadRecord()]);
  });

  it('in a slow provider does not delay the retry of others', async (t) => {
    const [slow, failing] = [uploadRecord(), uploadRecord({ provider: 'other' })];
    const { uploads, records, provider, providers } = await site(t, slow, failing);
    const [begun, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    provider.answer = () => answered.promise;
    const other = new DiscardingProvider({ name: 'other' });
    other.answer = () => {
      begun.resolve();
      return Promise.reject(new Error('503'));
    };
    providers.set('other', other);
    t.mock.timers.tick(GRACE);
    await begun.promise;
    await new Promise(setImmediate);
    other.answer = () => Promise.resolve();
    t.mock.timers.tick(10_000);
    while ((await records()).length > 1) await new Promise(setImmediate);
    assert.deepEqual(await records(), [slow]);
    answered.resolve();
    await uploads.idle();
  });

  it('that cannot be discarded does not keep the others of its provider', async (t) => {
    const all = ['1', '2', '3'].map((id) => uploadRecord({ 'upload-id': id, 'image-id': id }));
    const { records, provider, pass } = await site(t, ...all);
    const [stuck = ''] = all.map((record) => record['upload-id']);
    provider.answer = () =>
      provider.discarded.at(-1) === stuck ? Promise.reject(new Error('forbidden')) : Promise.resolve();
    await pass(GRACE);
    await pass(10_000);
    assert.deepEqual(await records(), all.slice(0, 1));
  });

  it('stays on record when the builder stops', async (t) => {
    const { records, uploads, provider, pass } = await site(t, uploadRecord());
    await uploads.close();
    await pass(GRACE);
    assert.deepEqual(provider.discarded, []);
    assert.equal((await records()).length, 1);
  });
});

it('a damaged record is logged and left alone; a half-written one is removed', async (t) => {
  const directory = temporaryDirectory(t);
  await writeFile(join(directory, 'torn.json'), '{"version": 1, "provider"');
  await writeFile(join(directory, 'newer.json'), JSON.stringify({ ...uploadRecord(), version: 2 }));
  await writeFile(join(directory, 'x.json.new'), '{"ver');
  const logger = new RecordingLogger();
  await Uploads.open(directory, { provider: () => undefined, logger });
  assert.deepEqual((await readdir(directory)).toSorted(), ['newer.json', 'torn.json']);
  assert.equal(
    logger.lines.filter((line) => /^warn the upload record .* is damaged: .* left alone/.test(line)).length,
    2,
  );
});
