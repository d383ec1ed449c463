import type { BaseImageBuilder } from './base.ts';
import type { DiskImage } from './disk-image.ts';
import type { ImageFormat } from './formats.ts';
import type { InstanceProvider } from './instance/instance-provider.ts';
import type { BuilderServices } from './registry.ts';
import type { ImageRepository } from './repository.ts';
import type { ObjectSchema, SettingsOf } from './settings-schema.ts';
import type { ImageProvider, Logger } from './types.ts';
import type { HashThreads } from './upload-source/hash-threads.ts';

/** A problem with a setting that a schema cannot express. */
export interface Diagnostic {
  /** JSON pointer, relative to the entry: `/winrm/fingerprint`. */
  readonly pointer: string;
  /** Follows the path in the message: `is not a fingerprint`. */
  readonly reason: string;
  /** What to do about it. */
  readonly remedy: string;
  /** Default `error`: the configuration is refused. `job-error`: jobs of the entry fail, the others do not. */
  readonly severity?: 'error' | 'job-error' | 'warning';
}

/** Surroundings of an entry whose settings are checked. */
export interface SettingsContext {
  /** Modules of the entries of `providers`, by the entry's name. Those that need no entry are included. */
  readonly providers: ReadonlyMap<string, ProviderModule>;
  /** `script-dir`, if there is one. */
  readonly scriptDir?: string;
}

/**
 * A kind of builder: everything about one value of `diskimages[].builder`.
 *
 * @typeParam S of {@link settings}
 */
export interface BuilderModule<S extends ObjectSchema = ObjectSchema> {
  /** `diskimages[].builder`. */
  readonly type: string;
  /** Keys of its disk images besides those that all disk images have. */
  readonly settings: S;
  /**
   * Top-level list of `nodepool.yaml` whose entries it builds. Default: the entries of `diskimages` that name its type.
   */
  readonly section?: string;
  /** Checks beyond the schema. */
  check?(settings: SettingsOf<S>, context: SettingsContext): Iterable<Diagnostic>;
  /** @throws ImageError `invalid-configuration` */
  create(diskimage: DiskImage, settings: SettingsOf<S>, services: BuilderServices): BaseImageBuilder;
  /** Starts services that run as long as the daemon, such as a poller or a reaper. */
  start?(site: BuilderSite): BuilderService<SettingsOf<S>> | Promise<BuilderService<SettingsOf<S>>>;
}

/** A disk image, with the settings of its builder's module. */
export interface BuilderEntry<Settings> {
  readonly diskimage: DiskImage;
  readonly settings: Settings;
}

/** A service of a builder module in a running daemon. */
export interface BuilderService<Settings> extends AsyncDisposable {
  /** Applies the configuration in force, at the start and after each reload: the disk images that are built here. */
  configure(entries: readonly BuilderEntry<Settings>[]): void;
}

/** A build that a service requests from the fleet. */
export interface BuildRequest {
  /** Name of the disk image. */
  readonly name: string;
  readonly imageId: string;
  /** Requests with the same key, of any host, are one job. */
  readonly key: string;
}

/** The daemon as its builder modules see it. */
export interface BuilderSite {
  readonly repository: ImageRepository;
  /** Gives the logger of a name, such as `nodepool.builder`. */
  readonly logger: (name: string) => Logger;
  /** Providers of instances that this host has used and that are configured. */
  readonly instanceProviders: () => Iterable<InstanceProvider>;
  /** Whether this host has the image, or a builder of the fleet offers it. */
  isOffered(imageId: string, signal: AbortSignal): Promise<boolean>;
  /**
   * Has a builder of the fleet build an image. Aborting detaches this caller; the build continues.
   *
   * @returns the builder's error if the build failed; undefined once the builder has the image
   * @throws an error if the result is unknown, such as that of a lost connection
   */
  requestBuild(request: BuildRequest, signal: AbortSignal): Promise<Error | undefined>;
}

// biome-ignore lint/suspicious/noExplicitAny: modules of all settings are assignable to no other type
type AnySettings = any; // oxlint-disable-line typescript/no-explicit-any

/**
 * A kind of provider: everything about one value of `providers[].type`. It takes images, runs instances, or both,
 * depending on which of {@link openImages} and {@link openInstances} it has. Opening a provider sends no request.
 *
 * @typeParam S of {@link settings}
 * @typeParam P of {@link prepare}
 */
export interface ProviderModule<S extends ObjectSchema = AnySettings, P = unknown> {
  /** `providers[].type`. */
  readonly type: string;
  /** Follows the type in the documentation: `a directory that serves images`. */
  readonly description: string;
  /** Keys of its entries besides those that all providers have. */
  readonly settings: S;
  /** Whether a provider named after the type exists without an entry, with default settings. Default false. */
  readonly implicit?: boolean;
  /** Whether the base images of its instances are files of this host. Default false: they have names in the provider. */
  readonly bootsFiles?: boolean;
  /** Checks beyond the schema. */
  check?(entry: ProviderEntry<S>): Iterable<Diagnostic>;
  /** Form of a provider that a command names without a configuration file. Absent: an entry is needed. */
  readonly shortForm?: ShortForm;
  /** Files that {@link prepare} reads, or would read if they existed: a change of one reloads the configuration. */
  files?(host: Omit<ProviderHost, 'warn'>): readonly string[];
  /**
   * Reads what an entry refers to, such as credentials in a file of the cloud's own. Runs at each load. A rejection is a
   * warning; requests to the provider then fail with its reason.
   */
  prepare?(entry: ProviderEntry<S>, host: ProviderHost): Promise<PreparedProvider<P>>;
  openImages?(entry: ProviderEntry<S>, services: ImageServices<P>): ImageProvider;
  openInstances?(entry: ProviderEntry<S>, services: InstanceServices<P>): InstanceProvider;
}

/** The form `TYPE:TEXT` of a provider, on a command line. */
export interface ShortForm {
  /** Stands for the text in messages: `PATH`. */
  readonly placeholder: string;
  /** The settings that the text stands for. */
  settings(text: string): Readonly<Record<string, unknown>>;
}

/** Settings of one entry of `providers`. */
export type ProviderEntry<S> = SettingsOf<S> & {
  readonly name: string;
  /** Bytes a second, of all uploads together. Default: no limit. */
  readonly 'bandwidth-limit'?: number;
  /** Seconds that an upload may take. Default: no limit. */
  readonly 'image-upload-timeout'?: number;
  readonly images: readonly { readonly name: string }[];
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

/** What a provider uses of the program that opens it. */
export interface ProviderServices<P = unknown> {
  /** Result of {@link ProviderModule.prepare}; rejects with its reason if that failed. */
  readonly prepared: () => Promise<P>;
  readonly logger: Logger;
  /** Variables such as `https_proxy`. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** What a provider of images uses besides. */
export interface ImageServices<P = unknown> extends ProviderServices<P> {
  /** Disk formats to accept, the best first. */
  readonly formats: readonly ImageFormat[];
  readonly threads: HashThreads;
  /** Reports the duration of a request to the cloud, in milliseconds. */
  readonly onTask: (task: string, milliseconds: number) => void;
}

/** What a provider of instances uses besides. */
export interface InstanceServices<P = unknown> extends ProviderServices<P> {
  /** Directory for records and instances of this provider. It is created by the provider. */
  readonly directory: string;
  /** Identity of this builder, which marks the instances that it launches. */
  readonly owner: string;
  /** Part of the owner's instances to see and to add to. Default: all of them, in whatever scope. */
  readonly scope?: string;
}
