import type {
  DiskImage,
  ImageFormat,
  ObjectSchema,
  ProviderModule,
  SettingsOf,
} from '@nodepool-builder/image-builder';
import type { FilterEntry } from '@nodepool-builder/image-builder/module-kit';
import type { GearmanServer } from './gearman-server.ts';
import type { ManagerSettings } from './manager.ts';
import type { NotificationSettings } from './notification.ts';
import type { CommonProviderKeys } from './provider-schema.ts';
import type { GENERAL } from './schema.ts';

type GeneralKeys = SettingsOf<typeof GENERAL>;

/** Keys of the top level in which no module has a part, with their defaults, and with absolute paths. */
export interface GeneralSettings
  extends Omit<GeneralKeys, 'build-environment' | 'public-variables' | 'gearman-servers' | 'notifications'> {
  readonly 'build-environment': readonly string[];
  readonly 'public-variables': readonly string[];
  /** Empty if the file names none: the daemon then runs a job server of its own. */
  readonly 'gearman-servers': readonly GearmanServer[];
  /** Empty: nobody is told. */
  readonly notifications: readonly NotificationSettings[];
}

/** A `nodepool.yaml` that has been read and found good. */
export interface Configuration extends GeneralSettings {
  /** Absolute path of the file it came from. */
  readonly file: string;
  /** `virtual-size-limit` in bytes. */
  readonly largestDisk: number;
  /** Whether a provider asks for compressed qcow2. */
  readonly compressesQcow2: boolean;
  /** `build-log-size` in bytes. */
  readonly buildLogLimit: number;
  readonly diskimages: readonly DiskImageConfiguration[];
  /** The entries of `providers` that take images. */
  readonly providers: readonly ProviderConfiguration[];
  /** Those that only run instances, and providers that need no entry, unless an entry has their name. */
  readonly instanceProviders: readonly ProviderConfiguration[];
  readonly manager: ManagerSettings;
}

/** A disk image. Its formats are its own and those that providers take. */
export interface DiskImageConfiguration extends DiskImage {
  /** Type of the builder. */
  readonly builder: string;
  /** Settings of the builder's module. */
  readonly settings: unknown;
  /** Digest of everything that decides what an image contains. If it changes, a new image is due. */
  readonly digest: string;
  /** `isImported` of the builder's module. */
  readonly isImported: boolean;
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
  /** The keys of all providers and those of the module. */
  readonly entry: ProviderSettings;
  /** Result of the module's `prepare`, such as credentials. */
  readonly prepared: PreparationResult;
  readonly imageType: ImageFormat;
  /** Its own `cloud-images`, and those of the top level. */
  readonly cloudImages: readonly CloudImageConfiguration[];
  /** Values of `{provider.…}` in `template-hostname`: `name`, `region_name`, `max_servers` and so on. */
  readonly attributes: Readonly<Record<string, unknown>>;
}

/** An image that a provider has, and that is chosen by its id or by filters. */
export interface CloudImageConfiguration {
  readonly name: string;
  /** Id in the provider; filters then mean nothing. */
  readonly imageId?: string;
  readonly filters: readonly FilterEntry[];
  /** Why no image can be chosen. */
  readonly reason?: string;
}

/** Keys of an entry of `providers`, with their defaults. */
export type ProviderSettings = SettingsOf<ObjectSchema> &
  CommonProviderKeys & { readonly name: string; readonly images: readonly ProviderImageConfiguration[] };

/** Result of a module's `prepare`, or its error: then requests to the provider fail with it. */
export interface PreparationResult {
  readonly value?: unknown;
  readonly error?: Error;
}

/** One entry of `providers[].images`. */
export interface ProviderImageConfiguration {
  readonly name: string;
  readonly diskimage?: string;
  /** It is not uploaded by a manager for the time being. */
  readonly pause: boolean;
  readonly meta: Readonly<Record<string, string>>;
  /** Selects an image of the provider for `nodepool-builder latest`. */
  readonly 'image-filters'?: readonly FilterEntry[];
}
