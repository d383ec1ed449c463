import { createHash } from 'node:crypto';
import type { Logger, SettingsOf } from '@nodepool-builder/image-builder';
import { DamagedRecord, Mutex, RecordDirectory } from '@nodepool-builder/image-builder/module-kit';

const TEXT = { type: 'string' } as const;

const SCHEMA = {
  type: 'object',
  required: ['version', 'provider', 'upload-id', 'image-id', 'image-name', 'external-name', 'begun'],
  properties: {
    version: { const: 1 },
    provider: TEXT, // providers[].name
    'upload-id': TEXT, // derived from the Gearman job, see `UploadRequest.uploadId`
    'image-id': TEXT,
    'image-name': TEXT, // providers[].images[].name
    'external-name': TEXT, // the image's name in the cloud
    begun: TEXT, // start of the upload, in ISO 8601
    'external-id': TEXT, // the cloud's id of the image, once the client may know it
  },
} as const;

/** An upload that has started, and whose end no job server has acknowledged. */
export type UploadRecord = SettingsOf<typeof SCHEMA>;

/** The key of a record. */
export type UploadKey = Pick<UploadRecord, 'provider' | 'upload-id'>;

/**
 * The records of uploads, one small file each. A record is on disk before its provider gets the first request, so
 * that a crash leaves no unknown image in a cloud.
 */
export class UploadRecords {
  readonly #directory: RecordDirectory<typeof SCHEMA>;
  readonly #records = new Map<string, UploadRecord>();
  /** Writes happen in the order of the calls. */
  readonly #writing = new Mutex();

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
    await this.#writing.run(async () => {
      await this.#directory.write(name, record);
      this.#records.set(name, record);
    });
  }

  async remove(key: UploadKey): Promise<void> {
    const name = recordName(key);
    await this.#writing.run(async () => {
      await this.#directory.remove(name);
      this.#records.delete(name);
    });
  }
}

/** Hashes the key, because an upload id may have any characters and any length. */
export function recordName({ provider, 'upload-id': uploadId }: UploadKey): string {
  return createHash('sha256').update(`${provider}\0${uploadId}`).digest('hex');
}
