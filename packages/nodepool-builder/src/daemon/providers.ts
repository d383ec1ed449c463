import { isDeepStrictEqual } from 'node:util';
import { HashThreads, type ImageProvider, type Logger } from '@nodepool-builder/image-builder';
import type { ProviderConfiguration } from '../configuration/configuration.ts';
import type { Statistics } from '../jobs/statistics.ts';
import type { ConfiguredProvider } from '../jobs/upload-job.ts';
import { IMAGE_PROVIDERS, type ProviderSettings } from './image-providers.ts';

/** How uploads are retried before their job is answered: `upload-retry-limit` ends it. */
const RETRY = { attempts: Number.POSITIVE_INFINITY, delay: 5 };

/** What {@link Providers} hands on to the providers. */
export interface ProvidersOptions {
  readonly logger: (name: string) => Logger;
  readonly statistics: Statistics;
  /** Its `http_proxy`, `https_proxy` and `no_proxy` hold for clouds. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** What carries images to the providers of the configuration in force. */
export class Providers implements Disposable {
  readonly #options: ProvidersOptions;
  readonly #threads = new HashThreads();
  #byName: ReadonlyMap<string, ConfiguredProvider> = new Map();

  constructor(options: ProvidersOptions) {
    this.#options = options;
  }

  get byName(): ReadonlyMap<string, ConfiguredProvider> {
    return this.#byName;
  }

  /** Puts others in force. One that did not change keeps its token, its rate and its bandwidth. */
  configure(configurations: readonly ProviderConfiguration[]): void {
    const before = this.#byName;
    this.#byName = new Map(
      configurations.map((configuration) => {
        const same = before.get(configuration.name);
        if (same !== undefined && isDeepStrictEqual(same.configuration, configuration)) {
          return [configuration.name, same];
        }
        return [configuration.name, { configuration, provider: this.#create(configuration) }];
      }),
    );
  }

  [Symbol.dispose](): void {
    for (const { provider } of this.#byName.values()) {
      if (Symbol.dispose in provider) (provider as ImageProvider & Disposable)[Symbol.dispose]();
    }
  }

  #create(configuration: ProviderConfiguration): ImageProvider {
    const { name, type, imageType, directory, bandwidthLimit, cloud } = configuration;
    const create = IMAGE_PROVIDERS[type];
    if (create === undefined) throw new TypeError(`provider ${name}: there is no type ${type}`);
    return create({
      name,
      formats: [imageType],
      logger: this.#options.logger('nodepool.ProviderManager'),
      ...(bandwidthLimit !== undefined && { bandwidthLimit }),
      ...(directory !== undefined && { directory }),
      ...(cloud !== undefined && { openstack: this.#openstack(configuration, cloud) }),
    });
  }

  #openstack(
    { name, rate, bandwidthLimit, imageImport, imageUploadTimeout, uploadRetryLimit }: ProviderConfiguration,
    cloud: NonNullable<ProviderConfiguration['cloud']>,
  ): NonNullable<ProviderSettings['openstack']> {
    const { logger, statistics, environment } = this.#options;
    return {
      settings: () => (cloud.error ? Promise.reject(cloud.error) : Promise.resolve(cloud.settings)),
      logger: logger('nodepool.ProviderManager'),
      session: { rate, proxyEnv: environment },
      retry: { ...RETRY, limit: uploadRetryLimit },
      threads: this.#threads,
      onTask: (task, milliseconds) => statistics.task(name, task, milliseconds),
      ...(imageUploadTimeout !== undefined && { uploadTimeout: imageUploadTimeout }),
      ...(bandwidthLimit !== undefined && { bandwidthLimit }),
      ...(imageImport !== undefined && { imageImport }),
    };
  }
}
