import { createHash } from 'node:crypto';
import type { Logger } from '@nodepool-builder/image-builder';
import { DamagedRecord, RecordDirectory } from '@nodepool-builder/image-builder/module-kit';

/** An upload that has started, and whose end no job server has acknowledged. */
export interface UploadRecord {
  readonly version: 1;
  /** `providers[].name`. */
  readonly provider: string;
  /** Id that is derived from the Gearman job, see `UploadRequest.uploadId`. */
  readonly 'upload-id': string;
  readonly 'image-id': string;
  /** The image's name under `providers[].images`. */
  readonly 'image-name': string;
  /** The image's name in the cloud. */
  readonly 'external-name': string;
  /** Start of the upload, in ISO 8601. */
  readonly begun: string;
  /** The cloud's id of the image, once the client may know it. */
  readonly 'external-id'?: string;
}

/** The key of a record. */
export type UploadKey = Pick<UploadRecord, 'provider' | 'upload-id'>;

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
 * The records of uploads, one small file each. A record is on disk before its provider gets the first request, so
 * that a crash leaves no unknown image in a cloud.
 */
export class UploadRecords {
  readonly #directory: RecordDirectory<typeof SCHEMA>;
  readonly #records = new Map<string, UploadRecord>();
  /** Writes happen in the order of the calls. */
  #written: Promise<void> = Promise.resolve();

  private constructor(directory: string) {
    this.#directory = new RecordDirectory(directory, SCHEMA);
  }

  /** Reads the records of an earlier process. A damaged record is logged and left alone. */
  static async open(directory: string, logger: Logger): Promise<UploadRecords> {
    const uploads = new UploadRecords(directory);
    const files = uploads.#directory;
    for (const name of await files.names()) {
      try {
        const record = await files.read(name);
        if (record !== undefined) uploads.#records.set(recordName(record), record);
        else await files.remove(name); // half-written: its upload never started
      } catch (error) {
        if (!(error instanceof DamagedRecord)) throw error;
        logger.warn(`the upload record ${error.message}; it is left alone`);
      }
    }
    return uploads;
  }

  get all(): readonly UploadRecord[] {
    return [...this.#records.values()];
  }

  get(key: UploadKey): UploadRecord | undefined {
    return this.#records.get(recordName(key));
  }

  /** Writes or replaces a record. It is on disk when the promise resolves. */
  async put(record: UploadRecord): Promise<void> {
    const name = recordName(record);
    await this.#inOrder(async () => {
      await this.#directory.write(name, record);
      this.#records.set(name, record);
    });
  }

  async remove(key: UploadKey): Promise<void> {
    const name = recordName(key);
    await this.#inOrder(async () => {
      await this.#directory.remove(name);
      this.#records.delete(name);
    });
  }

  async #inOrder(write: () => Promise<void>): Promise<void> {
    const done = this.#written.then(write);
    this.#written = done.catch(() => undefined);
    await done;
  }
}

/** Hashes the key, because an upload id may have any characters and any length. */
function recordName({ provider, 'upload-id': uploadId }: UploadKey): string {
  return createHash('sha256').update(`${provider}\0${uploadId}`).digest('hex');
}
