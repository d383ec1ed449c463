import type { GatedFile, RequiredAttestation } from './attestation-gate.ts';
import type { BaseImageBuilder } from './base.ts';
import type { CheckResult } from './diagnosis/check-result.ts';
import type { DiskImage } from './disk-image.ts';
import type { ImageFormat } from './formats.ts';
import type { FilterEntry, IMAGE_FILTERS } from './image-filter/image-filter.ts';
import type { InstanceProvider } from './instance/instance-provider.ts';
import type { ImageRepository } from './repository.ts';
import type { ObjectSchema, SettingsOf, SettingsSchema } from './settings-schema.ts';
import type { CheckOptions, ImageProvider, Logger, OperationOptions } from './types.ts';

// biome-ignore lint/suspicious/noExplicitAny: modules of all settings are assignable to no other type
type AnySettings = any; // oxlint-disable-line typescript/no-explicit-any

/** An error or a warning about a setting that a schema cannot express. */
export interface Diagnostic {
  /** JSON pointer, relative to the entry: `/images/0/name`. */
  readonly pointer: string;
  /** Reason, which follows the path in the message: `is not a fingerprint`. */
  readonly reason: string;
  /** Instruction for the user. */
  readonly remedy: string;
  /**
   * Severity of the diagnostic. `error`, the default, rejects the configuration. With `job-error`, only jobs of the
   * entry fail.
   */
  readonly severity?: 'error' | 'job-error' | 'warning';
}

/** Context of an entry whose settings are checked. */
export interface SettingsContext {
  /** Name of the entry. */
  readonly name: string;
  /** Modules of the entries of `providers`, by the entry's name. Implicit providers are included. */
  readonly providers: ReadonlyMap<string, ProviderModule>;
  /** Names of the `cloud-images` of a provider. */
  readonly cloudImages?: (provider: string) => readonly string[];
  /** `script-dir`, if it is set. */
  readonly scriptDir?: string;
  /** Makes a path absolute. Relative paths are resolved against the directory of the configuration file. */
  readonly absolute: (path: string) => string;
}

/**
 * A kind of builder, defined by one value of `diskimages[].builder`.
 *
 * @typeParam S schema of {@link settings}
 * @typeParam Settings result of {@link read}, the settings of a builder
 */
export interface BuilderModule<S extends ObjectSchema = AnySettings, Settings = AnySettings> {
  /** `diskimages[].builder`. */
  readonly type: string;
  /**
   * Keys of its disk images in addition to those that all disk images share. Programs and directories that they name
   * are checked by their format. The description follows the type in the documentation: `on a running instance`.
   */
  readonly settings: S;
  /** Lists of its disk images other than `diskimages`. */
  readonly entries?: BuilderEntries;
  /** Checks rules that the schema cannot express. */
  check?(settings: SettingsOf<S>, context: SettingsContext): Iterable<Diagnostic>;
  /**
   * Checks whether this host can run a build. `validate` and `doctor` report it. Something that another host may have
   * is a warning. Words of keys with the format `words` are split, and none has an open quote.
   */
  checkHost?(
    settings: SettingsOf<S>,
    diskimage: Pick<DiskImage, 'envVars' | 'elementsDir'>,
  ): AsyncIterable<Diagnostic>;
  /** Completes valid settings. Default: they are unchanged. */
  read?(settings: SettingsOf<S>, context: SettingsContext): Settings;
  /** Describes the images that it builds with these settings. */
  describe?(settings: Settings): ImageTraits;
  /** @throws ImageError `invalid-configuration` */
  create(diskimage: DiskImage, settings: Settings, services: BuilderServices): BaseImageBuilder;
  /**
   * Checks what a build of a disk image needs on this host and elsewhere: programs, permissions, services. It changes
   * nothing. A result that several disk images share is shown once.
   */
  diagnose?(settings: Settings, diskimage: DiskImage, options: CheckOptions): AsyncIterable<CheckResult>;
  /** Starts services that run as long as the daemon, such as a poller or a reaper. */
  start?(site: BuilderSite): BuilderService<Settings> | Promise<BuilderService<Settings>>;
}

/** Properties of the images that a builder makes. */
export interface ImageTraits {
  /** Settings that determine the contents of an image. If one changes, a new image is due. Default: all settings. */
  readonly content?: unknown;
  /** Name of the provider that has the image as soon as it is built, and needs no file. */
  readonly snapshotProvider?: string;
  /**
   * True if images are builds of another system, with image-ids of `importedImageId`. No age makes such an image due,
   * and one copy serves a fleet. Default false.
   */
  readonly isImported?: boolean;
}

/** Lists of `nodepool.yaml` other than `diskimages` that contain a builder's disk images. */
export interface BuilderEntries {
  /**
   * The builder's own list: entries with a name, or a mapping of names to entries, or a single entry. Entries of
   * `diskimages` then cannot name the builder.
   */
  readonly section?: BuilderSection;
  /** Entries of `providers[].images` that describe a disk image without an entry of `diskimages`. */
  readonly providerImages?: ProviderImages;
}

/** List of a builder's disk images. */
export interface BuilderSection {
  /** Key of the list. */
  readonly key: string;
  readonly description: string;
  /** Key whose value names an entry without a name. */
  readonly defaultName: string;
}

/** Disk images in `providers[].images`, where nodepool had them for its set-up scripts. */
export interface ProviderImages {
  /**
   * Keys of `providers[].images[]` that describe a disk image. Its `diskimage` is empty, and the first of these keys is
   * not.
   */
  readonly properties: Readonly<Record<string, SettingsSchema>>;
  /**
   * Returns why an image cannot be built in its provider. The reason follows the path of the first key in the message.
   */
  reason(
    image: Readonly<Record<string, unknown>>,
    provider: ProviderModule | undefined,
    context: Pick<SettingsContext, 'scriptDir'>,
  ): string | undefined;
  /** Returns the keys of the disk image, as in an entry of `diskimages`. */
  diskimage(image: Readonly<Record<string, unknown>>, provider: string): Readonly<Record<string, unknown>>;
}

/** Chooses an image: one of `cloud-images`, or the latest one that passes filters. */
export interface ImageChoice {
  readonly 'cloud-image'?: string;
  readonly 'image-filters'?: SettingsOf<typeof IMAGE_FILTERS>;
}

/** Services of the calling program for a builder. */
export interface BuilderServices {
  /** @throws ImageError `invalid-configuration` if the configuration has no provider of instances with this name */
  instanceProvider(name: string): InstanceProvider;
  /**
   * Chooses an image of a provider.
   *
   * @returns its id in the provider
   * @throws ImageError `image-not-found`, `invalid-configuration`, `invalid-filter`
   */
  chooseImage(provider: string, choice: ImageChoice, options?: OperationOptions): Promise<string>;
  /**
   * Decides whether an imported file may be used, based on its attestations.
   *
   * @throws ImageError `attestation-refused` with the rule that the file breaks
   */
  checkAttestations(
    required: RequiredAttestation,
    file: GatedFile,
    options?: OperationOptions,
  ): Promise<void>;
  /** Seconds for which instances of failed builds are kept, instead of the setting. */
  readonly keepOnFailure?: number;
  /** True if an instance may stay after its build has failed or was interrupted. Default true. */
  readonly instancesOutliveBuilds?: boolean;
}

/** A builder without a module. Its disk images have the settings of the builder `dib`. */
export type ImageBuilderClass = new (
  diskimage: DiskImage,
  settings: never,
  services: BuilderServices,
) => BaseImageBuilder;

/** A disk image, with the settings of its builder's module. */
export interface BuilderEntry<Settings> {
  readonly diskimage: DiskImage;
  readonly settings: Settings;
}

/** A service of a builder module in a running daemon. */
export interface BuilderService<Settings> extends AsyncDisposable {
  /**
   * Applies the current configuration, at the start and after each reload, with the disk images that are built here.
   *
   * @returns resolves once the service no longer uses providers that the reload removed
   */
  configure(entries: readonly BuilderEntry<Settings>[]): void | Promise<void>;
  /**
   * Prevents the service from deleting a snapshot of an image while an upload claims it.
   *
   * @returns releases the lock
   */
  lockSnapshots?(imageId: string, signal: AbortSignal): Promise<() => void>;
}

/** A build that a service requests from the fleet. */
export interface BuildRequest {
  /** Name of the disk image. */
  readonly name: string;
  readonly imageId: string;
  /** Key that requests of any host share to become one job. */
  readonly key: string;
}

/** The daemon as its builder modules see it. */
export interface BuilderSite {
  readonly repository: ImageRepository;
  /** Returns a logger by name, such as `nodepool.builder`. */
  readonly logger: (name: string) => Logger;
  /** Configured providers of instances with these names, and those that this process has used. */
  instanceProviders(names: Iterable<string>): Iterable<InstanceProvider>;
  /** Called once an instance without a build, or its image, was deleted in a provider. */
  onOrphanDeleted?(provider: string): void;
  /** Returns whether this host has the image, or a builder of the fleet offers it. */
  isOffered(imageId: string, signal: AbortSignal): Promise<boolean>;
  /**
   * Has a builder of the fleet build an image. Aborting detaches only this caller; the build continues.
   *
   * @returns the builder's error if the build failed; undefined once the builder has the image
   * @throws an error if the result is unknown, such as a lost connection
   */
  requestBuild(request: BuildRequest, signal: AbortSignal): Promise<Error | undefined>;
}

/**
 * A kind of provider, defined by one value of `providers[].type`. It stores images, runs instances, or both. A type
 * that stores no images and requires no key exists without an entry, as a provider named after the type.
 *
 * @typeParam S schema of {@link settings}
 * @typeParam P result of {@link prepare}
 */
export interface ProviderModule<S extends ObjectSchema = AnySettings, P = unknown> {
  /** `providers[].type`. */
  readonly type: string;
  /**
   * Keys of its entries in addition to those that all providers share. The description follows the type in the
   * documentation: `a directory that serves images`.
   */
  readonly settings: S;
  /** Checks rules that the schema cannot express. */
  check?(entry: ProviderEntry<S>): Iterable<Diagnostic>;
  /** Files that {@link prepare} reads, or would read if they existed. A change of one reloads the configuration. */
  files?(host: Omit<ProviderHost, 'warn'>): readonly string[];
  /**
   * Reads what an entry refers to, such as credentials in a file of the cloud. Runs at each load. A rejection is a
   * warning; requests to the provider then fail with its reason.
   */
  prepare?(entry: ProviderEntry<S>, host: ProviderHost): Promise<PreparedProvider<P>>;
  /** Stores images. */
  readonly images?: ImageSupport<S, P>;
  /** Runs instances. */
  readonly instances?: InstanceSupport<S, P>;
}

/** The part of a provider module that stores images. */
export interface ImageSupport<S extends ObjectSchema = AnySettings, P = unknown> {
  /** Opens a provider. It sends no request. */
  open(entry: ProviderEntry<S>, services: ImageServices<P>): ImageProvider;
  /** Spellings of nodepool's driver for images that a filter chooses. Default: only those of `image-filters`. */
  readonly cloudImages?: CloudImageKeys;
}

/** The part of a provider module that runs instances. */
export interface InstanceSupport<S extends ObjectSchema = AnySettings, P = unknown> {
  /** Opens a provider. It sends no request. */
  open(entry: ProviderEntry<S>, services: InstanceServices<P>): InstanceProvider;
  /** True if base images of instances are files on this host. By default, they are names in the provider. */
  readonly bootsFiles?: boolean;
  /** True if instances report the password that their system set for its administrator. Default false. */
  readonly reportsPasswords?: boolean;
}

/** An entry of `providers[].cloud-images`, with values of `image-filters` as text. */
export interface CloudImageEntry {
  readonly name: string;
  readonly 'image-filters'?: readonly FilterEntry[];
  readonly [key: string]: unknown;
}

/** Keys with which nodepool's driver of a cloud chooses an image. */
export interface CloudImageKeys {
  /** Keys in addition to `name`, `image-id` and `image-filters`. */
  readonly properties: Readonly<Record<string, SettingsSchema>>;
  /**
   * Translates all keys of an entry, including `image-filters`. An image must match all of them (`combineFilters`). A
   * condition without an equivalent is an error, because without it other images would match. Owners are only those
   * that the entry names.
   *
   * @returns the keys of `parseImageFilter`; empty if the entry has no condition
   * @throws ImageError `invalid-filter`
   */
  filters(image: CloudImageEntry): readonly FilterEntry[];
}

/** Settings of one entry of `providers`. */
export type ProviderEntry<S> = SettingsOf<S> & {
  readonly name: string;
  /** Bytes per second, for all uploads together. Default: no limit. */
  readonly 'bandwidth-limit'?: number;
  /** Seconds that an upload may take. Default: no limit. */
  readonly 'image-upload-timeout'?: number;
  readonly images: readonly { readonly name: string; readonly meta: Readonly<Record<string, string>> }[];
};

/** The host on which a configuration is loaded. */
export interface ProviderHost {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Home directory of the user. */
  readonly home: string;
  readonly warn: (message: string) => void;
}

/** Result of {@link ProviderModule.prepare}. */
export interface PreparedProvider<P> {
  readonly prepared: P;
  /** Disk format that the provider prefers, if `image-type` names none. */
  readonly imageType?: ImageFormat;
}

/** Services of the calling program for a provider. */
export interface ProviderServices<P = unknown> {
  /** Result of {@link ProviderModule.prepare}; rejects with its reason if that failed. */
  readonly prepared: () => Promise<P>;
  readonly logger: Logger;
}

/** Additional services for a provider of images. */
export interface ImageServices<P = unknown> extends ProviderServices<P> {
  /** Disk formats to accept, the preferred one first. */
  readonly formats: readonly ImageFormat[];
  /**
   * Directory for records of this provider that outlive the process, such as those of interrupted uploads. The provider
   * creates it. Absent in a program that uploads nothing.
   */
  readonly directory?: string;
  /** Reports the duration of a request to the cloud, in milliseconds. */
  readonly onTask: (task: string, milliseconds: number) => void;
}

/** Additional services for a provider of instances. */
export interface InstanceServices<P = unknown> extends ProviderServices<P> {
  /** Directory for records and instances of this provider. The provider creates it. */
  readonly directory: string;
  /** Identity of this builder, which marks the instances that it launches. */
  readonly owner: string;
  /** Part of the owner's instances to list and to add to. Default: all of them, in any scope. */
  readonly scope?: string;
}
