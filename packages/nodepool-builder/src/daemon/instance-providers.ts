import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import {
  type BuilderServices,
  ImageError,
  type ImageRepository,
  type InstanceProvider,
  type Logger,
} from '@nodepool-builder/image-builder';
import { InstanceRecords, QemuInstanceProvider } from '@nodepool-builder/on-instance';
import { type CloudSettings, OpenStackInstanceProvider } from '@nodepool-builder/provider-openstack';
import type {
  Configuration,
  ProviderConfiguration,
  QemuProviderConfiguration,
} from '../configuration/configuration.ts';
import { LOCAL_PROVIDER } from '../configuration/on-instance-source.ts';

/** What {@link InstanceProviders} hands on to the providers. */
export interface InstanceProvidersOptions {
  /** `images-dir`, without symbolic links. */
  readonly directory: string;
  /** Whose the instances are, see `builderIdentity`. */
  readonly owner: string;
  /** Part of the owner's instances to see, see `OpenStackInstanceProviderOptions`. Default: all of them. */
  readonly scope?: string;
  readonly logger: (name: string) => Logger;
  /** Its `http_proxy`, `https_proxy` and `no_proxy` hold for clouds. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Names of those that an earlier process worked with. */
  readonly used: readonly string[];
}

type Entry = ProviderConfiguration | QemuProviderConfiguration;

interface Opened {
  readonly entry: Entry;
  readonly provider: InstanceProvider;
}

/** What runs machines for the builders of the configuration in force. Each is opened when it is first asked for. */
export class InstanceProviders implements BuilderServices, Disposable {
  readonly #options: InstanceProvidersOptions;
  readonly #used: Set<string>;
  readonly #opened = new Map<string, Opened>();
  #entries: ReadonlyMap<string, Entry> = new Map();

  constructor(options: InstanceProvidersOptions) {
    this.#options = options;
    this.#used = new Set(options.used);
  }

  /** Those that may hold something of ours: that have been asked for, and are configured. */
  get used(): readonly InstanceProvider[] {
    return [...this.#used]
      .filter((name) => this.#entries.has(name))
      .map((name) => this.instanceProvider(name));
  }

  /** Puts others in force. One that did not change stays; a build goes on with the one that it began with. */
  configure({ providers, qemuProviders }: Pick<Configuration, 'providers' | 'qemuProviders'>): void {
    const entries: readonly Entry[] = [
      { name: LOCAL_PROVIDER },
      ...providers.filter(({ type }) => type === 'openstack'),
      ...qemuProviders,
    ];
    this.#entries = new Map(entries.map((entry) => [entry.name, entry]));
  }

  /** @throws ImageError `invalid-configuration` */
  instanceProvider(name: string): InstanceProvider {
    const entry = this.#entries.get(name);
    if (entry === undefined) {
      const remedy = 'add one of type openstack or qemu to providers and reload';
      throw new ImageError('invalid-configuration', `no provider "${name}" runs machines here; ${remedy}`);
    }
    this.#used.add(name);
    const opened = this.#opened.get(name);
    if (opened !== undefined && isDeepStrictEqual(opened.entry, entry)) return opened.provider;
    const provider = this.#open(entry);
    this.#opened.set(name, { entry, provider });
    return provider;
  }

  [Symbol.dispose](): void {
    for (const { provider } of this.#opened.values()) {
      if (Symbol.dispose in provider) (provider as InstanceProvider & Disposable)[Symbol.dispose]();
    }
  }

  #open(entry: Entry): InstanceProvider {
    const { directory, owner, scope, environment, logger } = this.#options;
    if ('type' in entry) {
      const { name, cloud, machines, rate } = entry;
      return new OpenStackInstanceProvider({
        ...machines,
        name,
        owner,
        ...(scope !== undefined && { scope }),
        settings: async () => settingsOf(cloud),
        logger: logger('nodepool.ProviderManager'),
        session: { rate, proxyEnv: environment },
      });
    }
    const name = `qemu-${encodeURIComponent(entry.name)}`;
    return new QemuInstanceProvider({ ...entry, directory: join(directory, '.nodepool-builder', name) });
  }
}

function settingsOf(cloud: ProviderConfiguration['cloud']): CloudSettings {
  if (cloud?.settings === undefined)
    throw cloud?.error ?? new TypeError('a provider of type openstack has no cloud');
  return cloud.settings;
}

/** The names of the providers that builds of an earlier process have left something in. */
export async function rememberedProviders(
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
