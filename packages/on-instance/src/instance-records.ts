import type {
  ImageRepository,
  Instance,
  InstanceProvider,
  OperationOptions,
  SettingsOf,
} from '@nodepool-builder/image-builder';
import {
  DamagedRecordError,
  makeStateDirectory,
  objectOf,
  RecordDirectory,
  TEXT,
  unlessAborted,
  writeDurably,
} from '@nodepool-builder/image-builder/internal';

const SCHEMA = objectOf(
  {
    /** `providers[].name`. */
    provider: TEXT,
    /**
     * Progress of the build. The steps run in `running`. The login may be gone from `cleaning` on. In `ending`, the
     * build only has to end the instance.
     */
    phase: { enum: ['launching', 'running', 'cleaning', 'cleaned', 'stopped', 'captured', 'ending'] },
    /** Number of steps that have succeeded. */
    stepsDone: { type: 'integer' },
    afterRestart: { enum: ['destroy', 'resume'] },
    /** Digest of the configuration. A build resumes only with the same digest. */
    recipe: TEXT,
  },
  {
    /** Host key or certificate of the machine in base64, after the first login. */
    hostKey: TEXT,
    /** Base image of the launch. */
    image: TEXT,
    /** ISO 8601 time until which the instance of a failed build is kept for inspection. */
    keptUntil: TEXT,
  },
);

/** Record of the instance of a build. */
export type InstanceRecord = SettingsOf<typeof SCHEMA>;

const KEY = '.key';

/** Claims of this process by path, shared by all {@link InstanceRecords}. */
const claims = new Map<string, Promise<void>>();

/**
 * Records of the instances that builds of one `images-dir` use, and their claims. A record is written before the launch
 * and removed when the instance is gone. An instance without a record is an orphan.
 */
export class InstanceRecords {
  readonly #records: RecordDirectory<typeof SCHEMA>;

  /** @param site site of the builds; the directory is created with the first record. */
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
      await unlessAborted(claims.get(this.#records.file(imageId)) ?? Promise.resolve(), signal);
    }
  }

  /** Claims the instance of an image. Returns undefined while another task has claimed it. */
  tryClaim(imageId: string): InstanceClaim | undefined {
    const key = this.#records.file(imageId);
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
}

/** The right to use the instance of one image, and its record. */
export class InstanceClaim {
  readonly imageId: string;
  /** Path of the private key of the login, if it has to outlive this process. */
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

  /** Reads the record. Returns undefined if it does not exist or is damaged. */
  async read(): Promise<InstanceRecord | undefined> {
    try {
      return await this.#records.read(this.imageId);
    } catch (error) {
      if (error instanceof DamagedRecordError) return undefined;
      throw error;
    }
  }

  /** Writes the record, which survives a power failure once this resolves. */
  async write(record: InstanceRecord): Promise<void> {
    await this.#records.write(this.imageId, record);
  }

  /** Writes the key file, which only this user can read. */
  async keepKey(privateKey: string): Promise<void> {
    await makeStateDirectory(this.#records.path);
    await writeDurably(this.keyFile, privateKey);
  }

  /** Removes the key, then the record. */
  async remove(): Promise<void> {
    await this.#records.remove(this.imageId);
  }
}

/** Names of the providers that may have instances or snapshots of earlier processes. */
export async function recordedProviders(
  repository: Pick<ImageRepository, 'recordDirectory' | 'images'>,
): Promise<readonly string[]> {
  const instances = new InstanceRecords(repository);
  const names = [...repository.images.values()].flatMap(({ snapshots = [] }) =>
    snapshots.map(({ provider }) => provider),
  );
  for (const imageId of await instances.imageIds()) {
    const claim = instances.tryClaim(imageId);
    const entry = await claim?.read().finally(() => claim.release());
    if (entry !== undefined) names.push(entry.provider);
  }
  return names;
}

/** Lists the instances of a build. */
export async function instancesOf(
  provider: InstanceProvider,
  imageId: string,
  options: OperationOptions,
): Promise<Instance[]> {
  return (await provider.list(options)).filter(({ buildId }) => buildId === imageId);
}

export async function destroyInstances(
  provider: InstanceProvider,
  imageId: string,
  options: OperationOptions,
): Promise<void> {
  for (const instance of await instancesOf(provider, imageId, options)) await instance.destroy(options);
}

/** Removes complete and partial captures of a build from the provider. */
export async function discardCaptures(
  provider: InstanceProvider,
  imageId: string,
  options: OperationOptions,
): Promise<void> {
  const captures = (await provider.captures?.(options)) ?? [];
  for (const capture of captures) if (capture.imageId === imageId) await capture.discard(options);
}
