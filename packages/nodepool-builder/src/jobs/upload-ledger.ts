import { createHash } from 'node:crypto';
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Logger, makeStateDirectory, writeDurably } from '@nodepool-builder/image-builder';
import type { JSONSchemaType } from 'ajv';
import { createAjv } from '../create-ajv.ts';

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

const SCHEMA: JSONSchemaType<LedgerEntry> = {
  type: 'object',
  required: ['version', 'provider', 'upload-id', 'image-id', 'image-name', 'external-name', 'begun'],
  properties: {
    version: { type: 'number', const: 1 },
    provider: TEXT,
    'upload-id': TEXT,
    'image-id': TEXT,
    'image-name': TEXT,
    'external-name': TEXT,
    begun: TEXT,
    'external-id': { ...TEXT, nullable: true },
  },
};

const ajv = createAjv();

/**
 * What has been begun at providers, a small file for each upload: it is on the disk before a provider is asked for
 * anything, so that whatever a crash leaves in a cloud is known afterwards.
 */
export class UploadLedger {
  readonly #directory: string;
  readonly #entries = new Map<string, LedgerEntry>();
  /** Writes happen in the order in which they are asked for. */
  #written: Promise<void> = Promise.resolve();

  private constructor(directory: string) {
    this.#directory = directory;
  }

  /** Reads what an earlier process left. A file that is no entry is logged, and stays. */
  static async open(directory: string, logger: Logger): Promise<UploadLedger> {
    const ledger = new UploadLedger(directory);
    await makeStateDirectory(directory);
    for (const name of await readdir(directory)) {
      const path = join(directory, name);
      const entry: unknown = name.endsWith('.json') ? parse(await readFile(path, 'utf8')) : undefined;
      if (ajv.validate(SCHEMA, entry)) ledger.#entries.set(fileName(entry), entry);
      else if (name.endsWith('.json')) logger.warn(`"${path}" is no record of an upload; it is left alone`);
      else await rm(path, { force: true }); // was being written: its upload never began
    }
    return ledger;
  }

  get entries(): readonly LedgerEntry[] {
    return [...this.#entries.values()];
  }

  get(key: UploadKey): LedgerEntry | undefined {
    return this.#entries.get(fileName(key));
  }

  /** Writes an entry, or replaces it. It is on the disk when this resolves. */
  async put(entry: LedgerEntry): Promise<void> {
    const name = fileName(entry);
    await this.#inOrder(async () => {
      await writeDurably(join(this.#directory, name), JSON.stringify(entry));
      this.#entries.set(name, entry);
    });
  }

  async remove(key: UploadKey): Promise<void> {
    const name = fileName(key);
    await this.#inOrder(async () => {
      await rm(join(this.#directory, name), { force: true });
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
function fileName({ provider, 'upload-id': uploadId }: UploadKey): string {
  return `${createHash('sha256').update(`${provider}\0${uploadId}`).digest('hex')}.json`;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
