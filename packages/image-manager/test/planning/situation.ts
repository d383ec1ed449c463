import {
  type Build,
  type BuildState,
  type ManagedDiskImage,
  type ManagedProvider,
  type ManagedProviderImage,
  type ManagerConfiguration,
  type ManagerState,
  type Plan,
  plan,
  type Upload,
  type UploadState,
  type World,
} from '@nodepool-builder/image-manager';

/** Noon, in whatever time zone the test runs. */
export const NOW: number = new Date(2026, 2, 10, 12).getTime();
export const MINUTE = 60;
export const HOUR = 3600;
export const DAY = 86_400;

type Settings<T> = Partial<Omit<T, 'name'>>;

/** `debian-0000000007-ownerabc`. */
export function imageId(number: number, diskimage = 'debian'): string {
  return `${diskimage}-${uploadId(number)}`;
}

/** `0000000007-ownerabc`. */
export function uploadId(number: number): string {
  return `${String(number).padStart(10, '0')}-ownerabc`;
}

/** A configuration, a state and a world, told one after the other. What is ready on disk is offered, unless it is said to be absent. */
export class Situation {
  readonly diskimages: ManagedDiskImage[] = [];
  readonly providers: ManagedProvider[] = [];
  readonly builds: Map<string, Build> = new Map();
  readonly uploads: Map<string, Upload> = new Map();
  readonly #absentSince = new Map<string, number>();
  readonly #underWay = new Set<string>();
  readonly #retryAt = new Map<string, number>();
  readonly #demanded = new Set<string>();
  #builders = true;
  #retryDelay = MINUTE;
  #now = NOW;

  /** Configures a disk image that is never due by age, unless it is said. */
  diskimage(name: string, settings: Settings<ManagedDiskImage> = {}): this {
    this.diskimages.push({ name, digest: 'digest', pause: false, keep: 2, buildTimeout: HOUR, ...settings });
    return this;
  }

  /** Configures a provider, with images that are called as their disk images are. */
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

  /** A build of debian, asked for so many seconds ago; by default as many hours as its number is below 100. */
  build(number: number, state: BuildState, settings: Partial<Build> & { readonly ago?: number } = {}): this {
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

  /** An upload of a build to a provider, whose number is the build's and 100, unless it is given. */
  upload(
    build: number,
    provider: string,
    state: UploadState,
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

  /** No builder offers the image, for so many seconds now. */
  absent(build: number, ago: number): this {
    this.#absentSince.set(imageId(build), NOW - ago * 1000);
    return this;
  }

  /** No builder has a function of building. */
  withoutBuilders(): this {
    this.#builders = false;
    return this;
  }

  underWay(id: string): this {
    this.#underWay.add(id);
    return this;
  }

  /** The last act on a record failed; it may be tried again in so many seconds. */
  retryIn(id: string, seconds: number): this {
    this.#retryAt.set(id, NOW + seconds * 1000);
    return this;
  }

  demanded(diskimage: string): this {
    this.#demanded.add(diskimage);
    return this;
  }

  /** The first pause after a failure, in seconds; by default a minute. The longest is an hour. */
  retryDelay(seconds: number): this {
    this.#retryDelay = seconds;
    return this;
  }

  /** The same, so many seconds later. */
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
        longestRetryDelay: HOUR,
        leakInterval: 600,
        absenceLimit: 1800,
      },
    };
  }

  get state(): ManagerState {
    return { builds: this.builds, uploads: this.uploads };
  }

  get world(): World {
    const onDisk = [...this.builds.values()].filter(
      ({ id, state }) => (state === 'ready' || state === 'deleting') && !this.#absentSince.has(id),
    );
    const ids = new Set(onDisk.map(({ id }) => id));
    const names = this.#builders ? this.diskimages.map(({ name }) => name) : [];
    return {
      now: this.#now,
      offered: { builds: new Set(names), uploads: ids, deletes: ids },
      underWay: this.#underWay,
      absentSince: this.#absentSince,
      retryAt: this.#retryAt,
      demanded: this.#demanded,
    };
  }

  plan(): Plan {
    return plan(this.configuration, this.state, this.world);
  }
}

/** One disk image, debian, in one provider, cloud. */
export function debianInCloud(settings: Settings<ManagedDiskImage> = {}): Situation {
  return new Situation().diskimage('debian', settings).provider('cloud', ['debian']);
}
