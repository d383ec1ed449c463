import type { ServerAddress } from '@nodepool-builder/gearman-node';
import type { Logger } from '@nodepool-builder/image-builder';
import { ImageManager, type ManagerEvent, openStateStore } from '@nodepool-builder/image-manager';
import type { Configuration } from '../configuration/configuration.ts';
import { toManagerConfiguration } from '../configuration/manager-configuration.ts';
import { Providers } from '../site/providers.ts';
import { eventOfEnd, newestImages } from './notifications/manager-events.ts';
import { Notifier } from './notifications/notifier.ts';

/** Milliseconds between two checks of the ages of images. */
const AGE_INTERVAL = 60_000;

/** Settings of {@link startManagerService}. */
export interface ManagerServiceOptions {
  readonly configuration: Configuration;
  readonly servers: readonly ServerAddress[];
  /** Returns a logger by name. */
  readonly logger: (name: string) => Logger;
  /** True while a changed configuration is being loaded. */
  readonly isReloading: () => Promise<boolean>;
  /** Called at each event, while the manager is the leader. It must not throw. */
  readonly onEvent?: ((event: ManagerEvent) => void) | undefined;
}

/**
 * Starts a manager.
 *
 * @throws StoreError if the store cannot be opened
 */
export async function startManagerService(options: ManagerServiceOptions) {
  const { configuration, servers } = options;
  const logger = options.logger('nodepool.manager');
  const store = await openStateStore(configuration.manager.store);
  const providers = new Providers({ logger: options.logger });
  providers.configure(configuration);
  const notifier = new Notifier({ logger: options.logger('nodepool.notifications') });
  notifier.configure(configuration.notifications);
  let current = configuration;
  const manager = new ImageManager({
    onEvent: (event) => {
      options.onEvent?.(event);
      if (event.kind !== 'ended' || manager.records === undefined) return;
      notifier.notify(eventOfEnd(event.record, manager.records));
    },
    configuration: toManagerConfiguration(configuration),
    provider: (name) => providers.get(name)?.provider,
    store,
    servers,
    logger,
    isReloading: options.isReloading,
  });
  const stop = new AbortController();
  const done = manager.run(stop.signal);
  const ages = setInterval(() => {
    if (manager.records === undefined) return; // only the leader has records
    for (const image of newestImages(current, manager.records, Date.now())) notifier.notify(image);
  }, AGE_INTERVAL);
  return {
    /** Replaces the configuration, from the next plan on. */
    reload: (changed: Configuration): void => {
      if (changed.manager.store !== configuration.manager.store) {
        logger.warn('manager.store is unchanged; restart to use another store');
      }
      current = changed;
      notifier.configure(changed.notifications);
      providers.configure(changed);
      manager.reconfigure(toManagerConfiguration(changed));
    },
    /** Stops the manager. Running jobs continue at the builders and are resumed after the next start. */
    close: async (): Promise<void> => {
      stop.abort(new Error('the manager is being stopped'));
      clearInterval(ages);
      await done;
      await notifier.close();
      providers[Symbol.dispose]();
      await store.close();
    },
  };
}
