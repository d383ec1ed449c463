import {
  type Build,
  type ManagedDiskImage,
  type ManagedProvider,
  type ManagedProviderImage,
  type ManagerConfiguration,
  type ManagerState,
  type Observation,
  type Pause,
  type Plan,
  plan,
  type Upload,
} from '@nodepool-builder/image-manager';

/** Noon in the time zone of the test run. */
export const NOW: number = new Date(2026, 2, 10, 12).getTime();
export const MINUTE = 60;
export const HOUR = 3600;
export const DAY = 86_400;

type Settings<T> = Partial<Omit<T, 'name'>>;

/** Returns `debian-0000000007-ownerabc`. */
export function imageId(number: number, diskimage = 'debian'): string {
  return `${diskimage}-${uploadId(number)}`;
}

/** Returns `0000000007-ownerabc`. */
export function uploadId(number: number): string {
  return `${String(number).padStart(10, '0')}-ownerabc`;
}

/** Builds a configuration, a state and an observation. Ready builds are offered, unless they are marked as absent. */
export class Situation {
  readonly diskimages: ManagedDiskImage[] = [];
  readonly providers: ManagedProvider[] = [];
  readonly builds: Map<string, Build> = new Map();
  readonly uploads: Map<string, Upload> = new Map();
  readonly pauses: Map<string, Pause> = new Map();
  readonly #absentSince = new Map<string, number>();
  readonly #inProgress = new Set<string>();
  readonly #retryAt = new Map<string, number>();
  readonly #requested = new Set<string>();
  #builders = true;
  #retryDelay = MINUTE;
  #now = NOW;

  /** Configures a disk image; without `rebuildAge`, it is never due by age. */
  diskimage(name: string, settings: Settings<ManagedDiskImage> = {}): this {
    this.diskimages.push({ name, digest: 'digest', pause: false, keep: 2, buildTimeout: HOUR, ...settings });
    return this;
  }

  /** Configures a provider. By default, its images have the names of their disk images. */
  provider(
    name: string,
    images: readonly (string | (Settings<ManagedProviderImage> & { readonly name: string }))[],
    settings: Settings<ManagedProvider> = {},
  ): this {
    this.providers.push({
      name,
      pause: false,
      uploadTimeout: HOUR,
      images: images.map((image) => {
        const given = typeof image === 'string' ? { name: image } : image;
        return { diskimage: given.name, pause: false, ...given };
      }),
      ...settings,
    });
    return this;
  }

  /** Adds a build of debian, requested `ago` seconds ago; by default, a higher number means a younger build. */
  build(
    number: number,
    state: Build['state'],
    settings: Partial<Build> & { readonly ago?: number } = {},
  ): this {
    const { ago = (100 - number) * HOUR, ...fields } = settings;
    const diskimage = fields.diskimage ?? 'debian';
    const requestedAt = NOW - ago * 1000;
    const build: Build = {
      id: imageId(number, diskimage),
      diskimage,
      state,
      configuration: 'digest',
      reason: 'a test',
      requestedAt,
      withdrawn: false,
      ...(state !== 'building' && { endedAt: requestedAt }),
      ...(state === 'failed' && { error: 'broken' }),
      ...fields,
    };
    this.builds.set(build.id, build);
    return this;
  }

  /** Adds an upload of a build to a provider. By default, its number is the build's plus 100. */
  upload(
    build: number,
    provider: string,
    state: Upload['state'],
    settings: Partial<Upload> & { readonly number?: number; readonly ago?: number } = {},
  ): this {
    const { number = build + 100, ago = (200 - number) * HOUR, ...fields } = settings;
    const diskimage = fields.diskimage ?? 'debian';
    const requestedAt = NOW - ago * 1000;
    const upload: Upload = {
      id: uploadId(number),
      imageId: imageId(build, diskimage),
      diskimage,
      provider,
      imageName: diskimage,
      state,
      reason: 'a test',
      requestedAt,
      leftovers: false,
      seen: true,
      ...(state !== 'uploading' && { endedAt: requestedAt }),
      ...(state === 'failed' && { error: 'broken' }),
      ...fields,
    };
    this.uploads.set(upload.id, upload);
    return this;
  }

  /** Marks an image as absent since `ago` seconds. */
  absent(build: number, ago: number): this {
    this.#absentSince.set(imageId(build), NOW - ago * 1000);
    return this;
  }

  /** Removes all image-build functions. */
  withoutBuilders(): this {
    this.#builders = false;
    return this;
  }

  inProgress(id: string): this {
    this.#inProgress.add(id);
    return this;
  }

  /** Records that a record's last task failed, and that the next attempt is due in this number of seconds. */
  retryIn(id: string, seconds: number): this {
    this.#retryAt.set(id, NOW + seconds * 1000);
    return this;
  }

  requested(diskimage: string): this {
    this.#requested.add(diskimage);
    return this;
  }

  /** Sets the first pause after a failure in seconds. Default: a minute; the max is an hour. */
  retryDelay(seconds: number): this {
    this.#retryDelay = seconds;
    return this;
  }

  /** Records that root@host paused or unpaused debian at {@link NOW}. */
  pauseRecord(isPaused: boolean): this {
    this.pauses.set('debian', { id: 'debian', isPaused, by: 'root@host', since: NOW });
    return this;
  }

  /** Moves the clock forward. */
  later(seconds: number): this {
    this.#now = NOW + seconds * 1000;
    return this;
  }

  get configuration(): ManagerConfiguration {
    return {
      diskimages: this.diskimages,
      providers: this.providers,
      timing: {
        retryDelay: this.#retryDelay,
        maxRetryDelay: HOUR,
        orphanScanInterval: 600,
        absenceTimeout: 1800,
      },
    };
  }

  get state(): ManagerState {
    return { builds: this.builds, uploads: this.uploads, pauses: this.pauses };
  }

  get observation(): Observation {
    const onDisk = [...this.builds.values()].filter(
      ({ id, state }) => (state === 'ready' || state === 'deleting') && !this.#absentSince.has(id),
    );
    const ids = new Set(onDisk.map(({ id }) => id));
    const names = this.#builders ? this.diskimages.map(({ name }) => name) : [];
    return {
      now: this.#now,
      offered: { builds: new Set(names), uploads: ids, deletes: ids },
      isComplete: true,
      inProgress: this.#inProgress,
      absentSince: this.#absentSince,
      retryAt: this.#retryAt,
      requested: this.#requested,
    };
  }

  plan(): Plan {
    return plan(this.configuration, this.state, this.observation);
  }
}

/** Makes a situation with disk image debian in provider cloud. */
export function debianInCloud(settings: Settings<ManagedDiskImage> = {}): Situation {
  return new Situation().diskimage('debian', settings).provider('cloud', ['debian']);
}
