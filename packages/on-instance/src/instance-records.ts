import {
  DamagedRecord,
  makeStateDirectory,
  RecordDirectory,
  unlessAborted,
  writeDurably,
} from '@nodepool-builder/image-builder/module-kit';
import type { OnInstance } from './settings.ts';

const TEXT = { type: 'string' } as const;

/**
 * Progress of a build on an instance. `running` includes the steps; `cleaning` may have removed the login; `ending` means
 * that only the end of the instance is missing.
 */
const PHASES = ['launching', 'running', 'cleaning', 'cleaned', 'stopped', 'captured', 'ending'] as const;

export type InstancePhase = (typeof PHASES)[number];

/** Record of the instance of a build. */
export interface InstanceRecord {
  /** `providers[].name`. */
  readonly provider: string;
  readonly phase: InstancePhase;
  /** Number of steps that have succeeded. */
  readonly stepsDone: number;
  readonly afterRestart: OnInstance['afterRestart'];
  /** Digest of the settings of the image: a build resumes only with the same settings. */
  readonly recipe: string;
  /** Of the machine, in base64, once it is known. */
  readonly hostKey?: string;
  /** ISO 8601; the instance of a failed build stays until then, for people to look at. */
  readonly keptUntil?: string;
}

const SCHEMA = {
  type: 'object',
  required: ['provider', 'phase', 'stepsDone', 'afterRestart', 'recipe'],
  properties: {
    provider: TEXT,
    phase: { enum: PHASES },
    stepsDone: { type: 'integer' },
    afterRestart: { enum: ['destroy', 'resume'] },
    recipe: TEXT,
    hostKey: TEXT,
    keptUntil: TEXT,
  },
} as const;

const KEY = '.key';

/** Claims of this process by path, shared by all {@link InstanceRecords}. */
const claims = new Map<string, Promise<void>>();

/**
 * Records of the instances that builds of one `images-dir` use, and their claims. A record is written before the launch
 * and removed when the instance is gone. An instance without a record is an orphan.
 */
export class InstanceRecords {
  readonly #records: RecordDirectory<typeof SCHEMA>;

  /** @param site of the builds; the directory is created with the first record. */
  constructor(site: { recordDirectory(name: string): string }) {
    this.#records = new RecordDirectory(site.recordDirectory('instances'), SCHEMA, [KEY]);
  }

  get directory(): string {
    return this.#records.path;
  }

  /**
   * Waits until no other task of this process uses the instance of this image.
   *
   * @throws the signal's reason
   */
  async claim(imageId: string, signal: AbortSignal): Promise<InstanceClaim> {
    for (;;) {
      const claim = this.tryClaim(imageId);
      if (claim !== undefined) return claim;
      await unlessAborted(claims.get(this.#key(imageId)) ?? Promise.resolve(), signal);
    }
  }

  /** Claims the instance of an image; undefined while another task has it. */
  tryClaim(imageId: string): InstanceClaim | undefined {
    const key = this.#key(imageId);
    if (claims.has(key)) return undefined;
    const released = Promise.withResolvers<void>();
    claims.set(key, released.promise);
    return new InstanceClaim(this.#records, imageId, () => {
      claims.delete(key);
      released.resolve();
    });
  }

  /** Ids with a record or a key on disk, including files left half-written by a crash. */
  async imageIds(): Promise<string[]> {
    return await this.#records.names();
  }

  #key(imageId: string): string {
    return this.#records.file(imageId);
  }
}

/** The right to use the instance of one image, and its record. */
export class InstanceClaim {
  readonly imageId: string;
  /** Path of the private key for the login, if it has to outlive this process. */
  readonly keyFile: string;
  /** Passes the claim to the next task. */
  readonly release: () => void;
  readonly #records: RecordDirectory<typeof SCHEMA>;

  constructor(records: RecordDirectory<typeof SCHEMA>, imageId: string, release: () => void) {
    this.imageId = imageId;
    this.keyFile = records.file(imageId, KEY);
    this.release = release;
    this.#records = records;
  }

  /** Undefined if the record does not exist or is damaged. */
  async read(): Promise<InstanceRecord | undefined> {
    try {
      return await this.#records.read(this.imageId);
    } catch (error) {
      if (error instanceof DamagedRecord) return undefined;
      throw error;
    }
  }

  /** The record survives a loss of power once this resolves. */
  async write(record: InstanceRecord): Promise<void> {
    await this.#records.write(this.imageId, record);
  }

  /** Writes the key file, which only this user can read. */
  async keepKey(privateKey: string): Promise<void> {
    await makeStateDirectory(this.#records.path);
    await writeDurably(this.keyFile, privateKey);
  }

  /** Removes the key and the record; the record last. */
  async remove(): Promise<void> {
    await this.#records.remove(this.imageId);
  }
}

/** The record of a build that is running. */
export class BuildRecord {
  readonly claim: InstanceClaim;
  #entry: InstanceRecord;

  constructor(claim: InstanceClaim, entry: InstanceRecord) {
    this.claim = claim;
    this.#entry = entry;
  }

  get entry(): InstanceRecord {
    return this.#entry;
  }

  /** Writes a change before the build continues. */
  async update(change: Partial<InstanceRecord>): Promise<void> {
    this.#entry = { ...this.#entry, ...change };
    await this.claim.write(this.#entry);
  }
}
