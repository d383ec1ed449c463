import { DamagedRecordError, RecordType } from '@nodepool-builder/image-builder/internal';
import type { ObjectStore, StoredObject } from './object-store.ts';
import { isNamedBy } from './s3-keys.ts';

const TEXT = { type: 'string', minLength: 1 } as const;

const RECORD = new RecordType({
  type: 'object',
  required: ['upload-id', 'external-id', 'begun'],
  properties: {
    'upload-id': TEXT,
    'external-id': TEXT,
    begun: TEXT,
    sha256: { ...TEXT, description: 'SHA-256 of the file, if known.' },
    'multipart-id': { ...TEXT, description: 'Id of the multipart upload, once known.' },
    'opaque-etags': { type: 'boolean', description: 'Whether part ETags differ from the MD5.' },
  },
});

/** Record of an upload that has started. */
export type UploadRecord = ReturnType<typeof RECORD.parse>;

/** Records of uploads, one object each. A record is written before anything else of the upload, and removed last. */
export class BucketRecords {
  readonly #store: ObjectStore;

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  async read(uploadId: string, signal: AbortSignal): Promise<UploadRecord | undefined> {
    return await this.#read(this.#store.keys.record(uploadId), signal);
  }

  async write(record: UploadRecord, signal: AbortSignal): Promise<void> {
    await this.#store.write(this.#store.keys.record(record['upload-id']), RECORD.text(record), signal);
  }

  async remove(uploadId: string, signal: AbortSignal): Promise<void> {
    await this.#store.remove(this.#store.keys.record(uploadId), signal);
  }

  async all(
    signal: AbortSignal,
  ): Promise<{ readonly object: StoredObject; readonly record: UploadRecord }[]> {
    const found: { readonly object: StoredObject; readonly record: UploadRecord }[] = [];
    for (const object of await this.#store.list(this.#store.keys.records, signal)) {
      const record = await this.#read(object.key, signal);
      if (record !== undefined) found.push({ object, record });
    }
    return found;
  }

  async #read(key: string, signal: AbortSignal): Promise<UploadRecord | undefined> {
    const text = await this.#store.read(key, signal);
    if (text === undefined) return undefined;
    try {
      const record = RECORD.parse(text, key);
      const { 'upload-id': uploadId, 'external-id': externalId } = record;
      if (this.#store.keys.record(uploadId) === key && isNamedBy(uploadId, externalId)) return record;
      throw new DamagedRecordError(key, 'it belongs to another upload');
    } catch (error) {
      if (!(error instanceof DamagedRecordError)) throw error;
      this.#store.warn(`${error.message}; it is ignored`);
      return undefined;
    }
  }
}
