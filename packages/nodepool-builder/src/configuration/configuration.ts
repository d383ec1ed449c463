import type {
  DiskImage,
  FilterEntry,
  ImageFormat,
  ObjectSchema,
  ProviderModule,
  SettingsOf,
} from '@nodepool-builder/image-builder';
import type { GearmanServer } from './gearman-server.ts';
import type { ManagerSettings } from './manager.ts';
import type { NotificationSettings } from './notification.ts';
import type { CommonProviderKeys } from './provider-schema.ts';
import type { GENERAL } from './schema.ts';

type GeneralKeys = SettingsOf<typeof GENERAL>;

/** Top-level keys that do not belong to a module, with defaults and absolute paths. */
export interface GeneralSettings
  extends Omit<GeneralKeys, 'build-environment' | 'public-variables' | 'gearman-servers' | 'notifications'> {
  readonly 'build-environment': readonly string[];
  readonly 'public-variables': readonly string[];
  /** Job servers in the file. Empty if it names none; the daemon then runs its own job server. */
  readonly 'gearman-servers': readonly GearmanServer[];
  /** Settings of all notifications. Empty if nobody is notified. */
  readonly notifications: readonly NotificationSettings[];
}

/** A valid `nodepool.yaml`. */
export interface Configuration extends GeneralSettings {
  /** Absolute path of the file. */
  readonly file: string;
  /** `virtual-size-limit` in bytes. */
  readonly maxDiskSize: number;
  /** True if any provider requests compressed qcow2. */
  readonly compressesQcow2: boolean;
  readonly diskimages: readonly DiskImageConfiguration[];
  /** The entries of `providers` that store images. */
  readonly providers: readonly ProviderConfiguration[];
  /** Providers that only run instances, and implicit providers, unless an entry has their name. */
  readonly instanceProviders: readonly ProviderConfiguration[];
  readonly manager: ManagerSettings;
}

/** A disk image. Its formats are its own and those that providers need. */
export interface DiskImageConfiguration extends DiskImage {
  /** Type of the builder. */
  readonly builder: string;
  /** Settings of the builder's module. */
  readonly settings: unknown;
  /** Digest of everything that determines the contents of an image. If it changes, a new image is due. */
  readonly digest: string;
  /** `isImported` of the builder's module. */
  readonly isImported: boolean;
  /** True if the disk image is paused: it is not offered, so its jobs wait at the job server. */
  readonly pause: boolean;
  /** Age in seconds; absent if a cron expression or the source of imported builds decides. */
  readonly rebuildAge?: number;
  readonly rebuildCron?: string;
  /** Number of good images to keep, on disk and in each provider. */
  readonly keep: number;
}

/** An entry of `providers`, or an implicit provider. */
export interface ProviderConfiguration {
  readonly name: string;
  readonly module: ProviderModule;
  /** The keys that all providers share, and the module's keys. */
  readonly entry: ProviderSettings;
  /** Result of the module's `prepare`, such as credentials. */
  readonly prepared: PreparationResult;
  readonly imageType: ImageFormat;
  /** The provider's `cloud-images`, and the shared ones of the top level. */
  readonly cloudImages: readonly CloudImageConfiguration[];
  /** Values of `{provider.…}` in `template-hostname`: `name`, `region_name`, `max_servers` and so on. */
  readonly attributes: Readonly<Record<string, unknown>>;
}

/** An image in a provider, chosen by its id or by filters. */
export interface CloudImageConfiguration {
  readonly name: string;
  /** Id in the provider. If set, filters are ignored. */
  readonly imageId?: string;
  readonly filters: readonly FilterEntry[];
  /** Reason why no image can be chosen. */
  readonly reason?: string;
}

/** Keys of an entry of `providers`, with their defaults. */
export type ProviderSettings = SettingsOf<ObjectSchema> &
  CommonProviderKeys & { readonly name: string; readonly images: readonly ProviderImageConfiguration[] };

/** Result of a module's `prepare`, or its error, with which requests to the provider then fail. */
export interface PreparationResult {
  readonly value?: unknown;
  readonly error?: Error;
}

/** One entry of `providers[].images`. */
export interface ProviderImageConfiguration {
  readonly name: string;
  readonly diskimage?: string;
  /** True if a manager pauses uploads of the image. */
  readonly pause: boolean;
  readonly meta: Readonly<Record<string, string>>;
}
