import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { ImageProvider, UploadResult } from '@nodepool-builder/image-builder';
import { CloudError } from '@nodepool-builder/image-builder/plugin';
import { FakeImageProvider } from '../../../../../test/doubles/fake-image-provider.ts';
import { RecordingLogger } from '../../../../../test/fixtures/recording-logger.ts';
import { temporaryDirectory } from '../../../../../test/fixtures/scratch-directory.ts';
import { recordName, type UploadRecord } from '../../../src/daemon/jobs/upload-record.ts';
import { type UploadingJob, Uploads } from '../../../src/daemon/jobs/uploads.ts';
import { readUploadRecords, uploadRecord, writeUploadRecord } from './upload-record.ts';

/** Milliseconds after which an upload without a job is discarded. */
export const GRACE = 120_000;

/** A job whose connection can be lost, and whose end is acknowledged on demand. */
export class FakeJob implements UploadingJob {
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

/** A provider that records discards; `discarding` decides how they end. */
export class DiscardingProvider extends FakeImageProvider {
  readonly discarded: string[] = [];
  discarding: () => Promise<void> = () => Promise.resolve();

  override async discard(uploadId: string): Promise<void> {
    this.discarded.push(uploadId);
    await this.discarding();
  }
}

export interface UploadsSite {
  readonly uploads: Uploads;
  readonly provider: DiscardingProvider;
  readonly providers: Map<string, ImageProvider>;
  readonly logger: RecordingLogger;
  /** Outcomes of the discards: true for success. */
  readonly discards: readonly boolean[];
  /** Path at which a directory makes all writes of a record fail. */
  readonly obstacle: (record: UploadRecord) => string;
  /** Returns the records on disk. */
  readonly records: () => Promise<(UploadRecord | undefined)[]>;
  /** Waits for all pending changes of records. */
  readonly settle: () => Promise<void>;
  /** Advances the clock and waits for due discards. */
  readonly pass: (milliseconds: number) => Promise<void>;
}

/** Opens uploads. An earlier process left those on record. */
export async function startUploads(
  t: TestContext,
  ...onRecord: readonly UploadRecord[]
): Promise<UploadsSite> {
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
      // Its changes follow all others, and it leaves no record.
      const unrelated = uploadRecord({ provider: 'unrelated' });
      await uploads.run(new FakeJob(), unrelated, () => Promise.reject(quotaExceeded())).catch(() => {});
    },
    pass: async (milliseconds) => {
      t.mock.timers.tick(milliseconds);
      await uploads.idle();
    },
  };
}

export const DONE: UploadResult = { externalId: 'uuid' };
export const quotaExceeded = (): Error => new CloudError('quota-exceeded', 'provider cloud: quota exceeded');
export const succeed = (): Promise<UploadResult> => Promise.resolve(DONE);
