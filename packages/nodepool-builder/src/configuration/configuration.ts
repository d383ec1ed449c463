import type {
  DiskImage,
  ImageFormat,
  ObjectSchema,
  ProviderEntry,
  ProviderModule,
} from '@nodepool-builder/image-builder';
import type { FilterEntry } from '@nodepool-builder/image-builder/module-kit';
import type { Timing } from '@nodepool-builder/image-manager';

/** A `nodepool.yaml` that has been read and found good; paths in it are absolute. */
export interface Configuration {
  /** Absolute path of the file it came from. */
  readonly file: string;
  readonly imagesDir: string;
  readonly buildLogDir?: string;
  /** How many logs of each disk image's builds are kept. */
  readonly buildLogRetention: number;
  /** Size limit in bytes of disks that are converted or imported. */
  readonly largestDisk: number;
  /** Size limit of a build's log, in bytes. */
  readonly buildLogLimit: number;
  /** Names of variables that builds and hooks get besides those that they always get; a `*` ends a prefix. */
  readonly buildEnvironment: readonly string[];
  /** Empty if the file names none: the daemon then runs a job server of its own. */
  readonly gearmanServers: readonly GearmanServer[];
  readonly diskimages: readonly DiskImageConfiguration[];
  /** The entries of `providers` that take images. */
  readonly providers: readonly ProviderConfiguration[];
  /** Those that only run instances, and providers that need no entry, unless an entry has their name. */
  readonly instanceProviders: readonly ProviderConfiguration[];
  readonly manager: ManagerSettings;
}

/** The section `manager`. Times are in seconds. */
export interface ManagerSettings {
  /** A file of SQLite, as an absolute path, or the URL of a PostgreSQL database. */
  readonly store: string;
  readonly timing: Timing;
}

/** One entry of `gearman-servers`. */
export interface GearmanServer {
  readonly host: string;
  readonly port: number;
  /** Absent for an unencrypted connection. */
  readonly tls?: GearmanTls;
}

/** TLS of the connections to a job server. The files are PEM. */
export interface GearmanTls {
  /** Default: the authorities that Node.js trusts. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** Name in the server's certificate. Default: its host. */
  readonly serverName?: string;
}

/** A disk image. Its formats are its own and those that providers take. */
export interface DiskImageConfiguration extends DiskImage {
  /** Type of the builder. */
  readonly builder: string;
  /** Settings of the builder's module. */
  readonly settings: unknown;
  /** Digest of everything that decides what an image contains. If it changes, a new image is due. */
  readonly digest: string;
  /** True if the images are built elsewhere, so that no age makes one due. */
  readonly importsBuilds: boolean;
  /** It is not offered for the time being: its jobs wait at the job server. */
  readonly pause: boolean;
  /** Seconds; absent if a cron expression or the source of imported builds decides. */
  readonly rebuildAge?: number;
  readonly rebuildCron?: string;
  /** How many good ones are kept, on disk and in each provider. */
  readonly keep: number;
}

/** One entry of `providers`, or a provider that needs none. */
export interface ProviderConfiguration {
  readonly name: string;
  readonly module: ProviderModule;
  /** The settings of its module. */
  readonly entry: ProviderEntry<ObjectSchema>;
  /** Result of the module's `prepare`, such as credentials. */
  readonly prepared: PreparationResult;
  readonly imageType: ImageFormat;
  /** How uploaded images are named, with the fields that nodepool knows. */
  readonly templateHostname: string;
  /** Values of `{provider.…}` in {@link templateHostname}: `name`, `region_name`, `max_servers` and so on. */
  readonly attributes: Readonly<Record<string, unknown>>;
  /** Seconds that an upload may take. Without it there is no limit. */
  readonly imageUploadTimeout?: number;
  /** Nothing is uploaded by a manager for the time being. */
  readonly pause: boolean;
  /** Runs after each upload; if it does not end with 0, the image is deleted from the provider. */
  readonly postUploadHook?: string;
  /** Empty for a provider that takes no images. */
  readonly images: readonly ProviderImageConfiguration[];
}

/** Result of a module's `prepare`, or its error: then requests to the provider fail with it. */
export type PreparationResult =
  | { readonly value: unknown; readonly error?: undefined }
  | { readonly value?: undefined; readonly error: Error };

/** One entry of `providers[].images`. */
export interface ProviderImageConfiguration {
  readonly name: string;
  readonly diskimage?: string;
  /** It is not uploaded by a manager for the time being. */
  readonly pause: boolean;
  readonly meta: Readonly<Record<string, string>>;
  /** Selects an image of the provider for `nodepool-builder latest`. */
  readonly imageFilters?: readonly FilterEntry[];
}
