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
  /** Default `error`: the configuration is refused. */
  readonly severity?: 'error' | 'warning';
}

/** Surroundings of an entry whose settings are checked. */
export interface SettingsContext {
  /** Types of the entries of `providers`, by name. */
  readonly providers: ReadonlyMap<string, string>;
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

/** A service of a builder module in a running daemon. */
export interface BuilderService<Settings> extends AsyncDisposable {
  /** Applies the configuration in force: at the start and after each reload. Settings by name of the disk image. */
  configure(settings: ReadonlyMap<string, Settings>): void;
}

/** The daemon as its builder modules see it. */
export interface BuilderSite {
  readonly repository: ImageRepository;
  /** Gives the logger of a name, such as `nodepool.builder`. */
  readonly logger: (name: string) => Logger;
  /** Providers of instances that this host has used and that are configured. */
  readonly instanceProviders: () => Iterable<InstanceProvider>;
  /** Requests a build from the fleet, as an `image-build` job. Resolves once a builder has the image. */
  readonly requestBuild: (imageName: string, imageId: string, signal: AbortSignal) => Promise<void>;
  /** Whether a builder of the fleet offers the image. */
  readonly isOffered: (imageId: string, signal: AbortSignal) => Promise<boolean>;
}

/**
 * A kind of provider: everything about one value of `providers[].type`.
 *
 * @typeParam S of {@link settings}
 * @typeParam P of {@link prepare}
 */
export interface ProviderModule<S extends ObjectSchema = ObjectSchema, P = unknown> {
  /** `providers[].type`. */
  readonly type: string;
  /** Keys of its entries besides those that all providers have. */
  readonly settings: S;
  /** Checks beyond the schema. */
  check?(settings: SettingsOf<S>, context: SettingsContext): Iterable<Diagnostic>;
  /** Reads what the settings refer to, such as credentials in a file of the cloud's own. Runs at each load. */
  prepare?(settings: ProviderEntry<S>, host: ProviderHost): Promise<PreparedProvider<P>>;
  /** Connects to nothing yet: a provider is opened with the first request. */
  open(entry: ProviderEntry<S>, services: ProviderServices<P>): OpenedProvider;
}

/** Settings of one entry of `providers`. */
export type ProviderEntry<S> = SettingsOf<S> & {
  readonly name: string;
  /** Bytes a second, of all uploads together. Default: no limit. */
  readonly 'bandwidth-limit'?: number;
  /** Seconds that an upload may take. Default: no limit. */
  readonly 'image-upload-timeout'?: number;
};

/** The host on which a configuration is loaded. */
export interface ProviderHost {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly workingDirectory: string;
  readonly homeDirectory: string;
  readonly warn: (message: string) => void;
}

/** Result of {@link ProviderModule.prepare}. */
export interface PreparedProvider<P> {
  readonly prepared: P;
  /** Disk format that the provider prefers, if `image-type` names none. */
  readonly imageType?: ImageFormat;
  /** Files that were read, or that would be read if they existed: a change of one reloads the configuration. */
  readonly files?: readonly string[];
}

/** What a provider uses of the daemon. */
export interface ProviderServices<P = unknown> {
  readonly prepared: P;
  /** Disk formats to accept, the best first. */
  readonly formats: readonly ImageFormat[];
  readonly logger: Logger;
  /** Variables such as `https_proxy`. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Directory for records and instances of this provider. It is created by the provider. */
  readonly directory: string;
  /** Identity of this builder, which marks the instances that it launches. */
  readonly owner: string;
  /** Part of the owner's instances to see and to add to. Default: all of them, in whatever scope. */
  readonly scope?: string;
  readonly threads: HashThreads;
  /** Reports the duration of a request to the cloud, in milliseconds. */
  readonly onTask: (task: string, milliseconds: number) => void;
}

/** What a provider offers: it takes images, runs instances, or both. */
export interface OpenedProvider {
  readonly images?: ImageProvider;
  readonly instances?: InstanceProvider;
}
