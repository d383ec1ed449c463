import { setFlagsFromString } from 'node:v8';
import type { ServerAddress } from '@nodepool-builder/gearman-node';
import type { Logger } from '@nodepool-builder/image-builder';
import { ImageManager, openStateStore, type StateStore } from '@nodepool-builder/image-manager';
import type { Configuration } from '../configuration/configuration.ts';
import { Providers } from '../daemon/providers.ts';
import { toManagerConfiguration } from './manager-configuration.ts';

/** Settings of a {@link ManagerService}. */
export interface ManagerServiceOptions {
  readonly configuration: Configuration;
  readonly servers: readonly ServerAddress[];
  /** Environment with the proxies for clouds. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Returns a logger by name. */
  readonly logger: (name: string) => Logger;
}

/** A running manager with its store and providers. */
export class ManagerService implements AsyncDisposable {
  readonly #options: ManagerServiceOptions;
  readonly #store: StateStore;
  readonly #providers: Providers;
  readonly #manager: ImageManager;
  readonly #stop = new AbortController();
  readonly #done: Promise<void>;

  private constructor(options: ManagerServiceOptions, store: StateStore) {
    const { configuration, servers, environment, logger } = options;
    this.#options = options;
    this.#store = store;
    this.#providers = new Providers({ logger, environment });
    this.#providers.configure(configuration);
    this.#manager = new ImageManager({
      configuration: toManagerConfiguration(configuration),
      provider: (name) => this.#providers.get(name)?.provider,
      store,
      servers,
      logger: logger('nodepool.manager'),
    });
    this.#done = this.#manager.run(this.#stop.signal);
  }

  /**
   * Starts a manager. Makes V8 collect garbage earlier in the whole process: planning produces much garbage, and the
   * heap would otherwise grow to three times the memory in use.
   *
   * @throws StoreError if the store cannot be opened
   */
  static async start(options: ManagerServiceOptions): Promise<ManagerService> {
    setFlagsFromString('--heap-growing-percent=50'); // an unknown flag causes only a message
    return new ManagerService(options, await openStateStore(options.configuration.manager.store));
  }

  /** Replaces the configuration, from the next plan on. */
  reload(configuration: Configuration): void {
    const { store } = this.#options.configuration.manager;
    if (configuration.manager.store !== store) {
      this.#options
        .logger('nodepool.manager')
        .warn('manager.store is unchanged; restart to use another store');
    }
    this.#providers.configure(configuration);
    this.#manager.reconfigure(toManagerConfiguration(configuration));
  }

  /** Stops the manager. Running jobs continue at the builders and are resumed after the next start. */
  async close(): Promise<void> {
    this.#stop.abort(new Error('the manager is being stopped'));
    await this.#done;
    this.#providers[Symbol.dispose]();
    await this.#store.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
