import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import {
  type BuilderServices,
  type ImageChoice,
  ImageError,
  type ImageProvider,
  type InstanceProvider,
  type Logger,
  type OperationOptions,
  type ProviderServices,
} from '@nodepool-builder/image-builder';
import { toFilterEntries } from '../configuration/cloud-images.ts';
import type { Configuration, ProviderConfiguration } from '../configuration/configuration.ts';
import { findCloudImage, resolveCloudImage } from './choose-image.ts';

/** Settings of {@link Providers}. */
export interface ProvidersOptions {
  readonly logger: (name: string) => Logger;
  /** Receives the duration of each request to a cloud, in milliseconds. */
  readonly onTask?: (provider: string, task: string, milliseconds: number) => void;
  /** Options of instances. Default: no instances. */
  readonly instances?: InstanceOptions;
}

/** A provider with its configuration. */
export interface ConfiguredProvider {
  readonly configuration: ProviderConfiguration;
  /** Image provider; absent if the provider stores no images. */
  readonly provider?: ImageProvider | undefined;
}

/** A provider that stores images. */
export interface UploadTarget extends ConfiguredProvider {
  readonly provider: ImageProvider;
}

/** The builder to which instances belong. */
export interface InstanceOptions {
  /** `images-dir`, without symbolic links. */
  readonly directory: string;
  /** Owner of the instances, see `builderIdentity`. */
  readonly owner: string;
  /** Limits the visible instances to a part of the owner's. Default: all of them. */
  readonly scope?: string;
}

/** A provider, opened on first use. */
interface Opened {
  readonly configuration: ProviderConfiguration;
  images?: ImageProvider | undefined;
  instances?: InstanceProvider | undefined;
}

/** The providers of the configuration in force. */
export class Providers implements Pick<BuilderServices, 'instanceProvider' | 'chooseImage'>, Disposable {
  readonly #options: ProvidersOptions;
  readonly #used = new Set<string>();
  #byName: ReadonlyMap<string, Opened> = new Map();
  /** Removed and changed providers that operations may still use. */
  readonly #replaced = new Set<Opened>();

  constructor(options: ProvidersOptions) {
    this.#options = options;
  }

  /**
   * Applies another configuration. An unchanged provider keeps its token, its rate and its bandwidth.
   *
   * @returns closes the removed and the changed providers; call it once no operation uses them
   */
  configure({
    providers,
    instanceProviders,
  }: Pick<Configuration, 'providers' | 'instanceProviders'>): () => void {
    const before = this.#byName;
    this.#byName = new Map(
      [...instanceProviders, ...providers].map((configuration): [string, Opened] => {
        const known = before.get(configuration.name);
        const isSame = known !== undefined && isDeepStrictEqual(known.configuration, configuration);
        return [configuration.name, isSame ? known : { configuration }];
      }),
    );
    const current = new Set(this.#byName.values());
    const replaced = [...before.values()].filter((opened) => !current.has(opened));
    for (const opened of replaced) this.#replaced.add(opened);
    return () => close(replaced.filter((opened) => this.#replaced.delete(opened)));
  }

  /** Returns a provider of the current configuration. */
  get(name: string): ConfiguredProvider | undefined {
    const opened = this.#byName.get(name);
    if (opened === undefined) return undefined;
    const { configuration } = opened;
    const { module, entry, imageType } = configuration;
    const directory = this.#stateDirectory(configuration);
    opened.images ??= module.images?.open(entry, {
      ...this.#services(configuration),
      ...(directory !== undefined && { directory: join(directory, 'uploads') }),
      formats: [imageType],
      onTask: (task, milliseconds) => this.#options.onTask?.(name, task, milliseconds),
    });
    return { configuration, provider: opened.images };
  }

  /**
   * Returns providers that may have instances or snapshots of this builder: the configured ones that were used.
   *
   * @param names of providers that an earlier process used
   */
  used(names: Iterable<string> = []): readonly InstanceProvider[] {
    for (const name of names) this.#used.add(name);
    return [...this.#used]
      .filter((name) => this.#byName.get(name)?.configuration.module.instances !== undefined)
      .map((name) => this.instanceProvider(name));
  }

  /** @throws ImageError `invalid-configuration` */
  instanceProvider(name: string): InstanceProvider {
    const opened = this.#byName.get(name);
    if (opened !== undefined) opened.instances ??= this.#openInstances(opened.configuration);
    if (opened?.instances === undefined) {
      const remedy = 'add one that runs instances to providers and reload';
      throw new ImageError('invalid-configuration', `no provider "${name}" runs instances here; ${remedy}`);
    }
    this.#used.add(name);
    return opened.instances;
  }

  /** @throws ImageError `image-not-found`, `invalid-configuration`, `invalid-filter`, and errors of the provider */
  async chooseImage(name: string, choice: ImageChoice, options: OperationOptions = {}): Promise<string> {
    const { configuration, provider } = this.get(name) ?? {};
    if (configuration === undefined || provider === undefined) {
      throw new ImageError(
        'invalid-configuration',
        `no provider "${name}" stores images here; add one that does to providers and reload`,
      );
    }
    const { 'cloud-image': image, 'image-filters': filters } = choice;
    const selection =
      image === undefined
        ? { filters: toFilterEntries(filters ?? []) }
        : findCloudImage(configuration, image);
    return await resolveCloudImage(provider, selection, options);
  }

  [Symbol.dispose](): void {
    close([...this.#byName.values(), ...this.#replaced]);
    this.#replaced.clear();
  }

  #openInstances(configuration: ProviderConfiguration): InstanceProvider | undefined {
    const { module, entry } = configuration;
    const { instances } = this.#options;
    const directory = this.#stateDirectory(configuration);
    if (instances === undefined || directory === undefined) return undefined;
    return module.instances?.open(entry, { ...this.#services(configuration), ...instances, directory });
  }

  #stateDirectory({ name, module }: ProviderConfiguration): string | undefined {
    const { directory } = this.#options.instances ?? {};
    if (directory === undefined) return undefined;
    return join(directory, '.nodepool-builder', `${module.type}-${encodeURIComponent(name)}`);
  }

  #services({ prepared }: ProviderConfiguration): ProviderServices {
    return {
      prepared: () => (prepared.error ? Promise.reject(prepared.error) : Promise.resolve(prepared.value)),
      logger: this.#options.logger('nodepool.ProviderManager'),
    };
  }
}

function close(providers: readonly Opened[]): void {
  for (const provider of providers.flatMap(({ images, instances }) => [images, instances])) {
    if (provider !== undefined && Symbol.dispose in provider) (provider as Disposable)[Symbol.dispose]();
  }
}
