import { createHash } from 'node:crypto';
import type { Logger } from '@nodepool-builder/image-builder';
import { DamagedRecord, RecordDirectory } from '@nodepool-builder/image-builder/module-kit';

/** One upload that has begun and whose end no job server has acknowledged. */
export interface LedgerEntry {
  readonly version: 1;
  /** `providers[].name`. */
  readonly provider: string;
  /** Which upload it is: derived from the Gearman job, see `UploadRequest.uploadId`. */
  readonly 'upload-id': string;
  readonly 'image-id': string;
  /** The image's name under `providers[].images`. */
  readonly 'image-name': string;
  /** What the image is called in the cloud. */
  readonly 'external-name': string;
  /** ISO 8601. */
  readonly begun: string;
  /** The cloud's id of the image, from the moment on at which the client may know of it. */
  readonly 'external-id'?: string;
}

/** Which upload an entry is about. */
export type UploadKey = Pick<LedgerEntry, 'provider' | 'upload-id'>;

const TEXT = { type: 'string' } as const;

const SCHEMA = {
  type: 'object',
  required: ['version', 'provider', 'upload-id', 'image-id', 'image-name', 'external-name', 'begun'],
  properties: {
    version: { const: 1 },
    provider: TEXT,
    'upload-id': TEXT,
    'image-id': TEXT,
    'image-name': TEXT,
    'external-name': TEXT,
    begun: TEXT,
    'external-id': TEXT,
  },
} as const;

/**
 * Uploads that have begun, one small file each. A record is on disk before its provider gets the first request, so that
 * a crash leaves nothing unknown in a cloud.
 */
export class UploadLedger {
  readonly #records: RecordDirectory<typeof SCHEMA>;
  readonly #entries = new Map<string, LedgerEntry>();
  /** Writes happen in the order of the calls. */
  #written: Promise<void> = Promise.resolve();

  private constructor(directory: string) {
    this.#records = new RecordDirectory(directory, SCHEMA);
  }

  /** Reads the records of an earlier process. A damaged one is logged and left alone. */
  static async open(directory: string, logger: Logger): Promise<UploadLedger> {
    const ledger = new UploadLedger(directory);
    const records = ledger.#records;
    for (const name of await records.names()) {
      try {
        const entry = await records.read(name);
        if (entry !== undefined) ledger.#entries.set(recordName(entry), entry);
        else await records.remove(name); // half-written: its upload never began
      } catch (error) {
        if (!(error instanceof DamagedRecord)) throw error;
        logger.warn(`the upload record ${error.message}; it is left alone`);
      }
    }
    return ledger;
  }

  get entries(): readonly LedgerEntry[] {
    return [...this.#entries.values()];
  }

  get(key: UploadKey): LedgerEntry | undefined {
    return this.#entries.get(recordName(key));
  }

  /** Writes an entry, or replaces it. It is on the disk when this resolves. */
  async put(entry: LedgerEntry): Promise<void> {
    const name = recordName(entry);
    await this.#inOrder(async () => {
      await this.#records.write(name, entry);
      this.#entries.set(name, entry);
    });
  }

  async remove(key: UploadKey): Promise<void> {
    const name = recordName(key);
    await this.#inOrder(async () => {
      await this.#records.remove(name);
      this.#entries.delete(name);
    });
  }

  async #inOrder(write: () => Promise<void>): Promise<void> {
    const done = this.#written.then(write);
    this.#written = done.catch(() => undefined);
    await done;
  }
}

/** An upload id may hold anything, and be longer than a file name. */
function recordName({ provider, 'upload-id': uploadId }: UploadKey): string {
  return createHash('sha256').update(`${provider}\0${uploadId}`).digest('hex');
}
