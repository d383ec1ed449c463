import { setFlagsFromString } from 'node:v8';
import type { ServerAddress } from '@nodepool-builder/gearman-node';
import type { Logger } from '@nodepool-builder/image-builder';
import { ImageManager, openStateStore, type StateStore } from '@nodepool-builder/image-manager';
import type { Configuration } from '../configuration/configuration.ts';
import { Providers } from '../daemon/providers.ts';
import { Statistics } from '../jobs/statistics.ts';
import { toManagerConfiguration } from './manager-configuration.ts';

/** What a {@link ManagerService} works with. */
export interface ManagerServiceOptions {
  readonly configuration: Configuration;
  readonly servers: readonly ServerAddress[];
  /** Proxies for clouds. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Where log lines go, by the logger's name. */
  readonly logger: (name: string) => Logger;
}

/** A manager at work, with the store and the providers that its configuration names. */
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
    this.#providers = new Providers({ logger, statistics: new Statistics(undefined), environment });
    this.#providers.configure(configuration.providers);
    this.#manager = new ImageManager({
      configuration: toManagerConfiguration(configuration),
      provider: (name) => this.#providers.byName.get(name)?.provider,
      store,
      servers,
      logger: logger('nodepool.manager'),
    });
    this.#done = this.#manager.run(this.#stop.signal);
  }

  /**
   * Begins to manage. It has V8 collect garbage the sooner, in the whole process: planning leaves much of it, and
   * a heap that is let grow holds three times what is in use.
   *
   * @throws StoreError if the store cannot be opened
   */
  static async start(options: ManagerServiceOptions): Promise<ManagerService> {
    setFlagsFromString('--heap-growing-percent=50'); // one that does not know it says so, and goes on
    return new ManagerService(options, await openStateStore(options.configuration.manager.store));
  }

  /** Puts another configuration in force, from the next plan on. */
  reload(configuration: Configuration): void {
    const { store } = this.#options.configuration.manager;
    if (configuration.manager.store !== store) {
      this.#options.logger('nodepool.manager').warn('manager.store stays as it was; restart to use another');
    }
    this.#providers.configure(configuration.providers);
    this.#manager.reconfigure(toManagerConfiguration(configuration));
  }

  /** Stops managing; what is under way goes on at the builders, and is followed again after the next start. */
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
