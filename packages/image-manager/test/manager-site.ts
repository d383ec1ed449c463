// Not a unit test: it takes seconds.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { Client, JobServer } from '@nodepool-builder/gearman-node';
import {
  ImageManager,
  type ManagedDiskImage,
  type ManagerConfiguration,
  type ManagerEvent,
  type ManagerState,
  type ManagerStore,
  openStateStore,
  type StateStore,
  type Timing,
} from '@nodepool-builder/image-manager';
import { freePort } from '../../../scripts/free-port.ts';
import { RecordingLogger } from '../../../test/fixtures/recording-logger.ts';
import { undoAfter } from '../../../test/fixtures/undo-after.ts';
import { waitUntil } from '../../../test/fixtures/wait-until.ts';
import { SiteBuilder } from './site-builder.ts';
import { SiteProvider } from './site-provider.ts';

/** Differences from a site with debian in the providers east and west, and one job server. */
export interface SiteOptions {
  readonly diskimage?: Partial<ManagedDiskImage>;
  readonly providers?: readonly string[];
  /** Number of job servers to start. Default 1. */
  readonly servers?: number;
  /** Ports of job servers to use instead. */
  readonly ports?: readonly number[];
  readonly timing?: Partial<Timing>;
}

/** A running manager. */
export interface RunningManager {
  readonly manager: ImageManager;
  /** Stops it as in a crash: its jobs continue in the builders. */
  stop(): Promise<void>;
}

const HOST = '127.0.0.1';

/** States of records without a task. */
const SETTLED = new Set(['ready', 'missing', 'failed', 'deleted']);

/** Job servers, builders, providers and a store for managers, all closed at the end of the test. */
export class ManagerSite {
  readonly store: StateStore;
  readonly log: RecordingLogger = new RecordingLogger();
  /** Events of all managers. */
  readonly events: ManagerEvent[] = [];
  readonly providers: ReadonlyMap<string, SiteProvider>;
  /** Ports of the job servers. */
  readonly ports: readonly number[];
  configuration: ManagerConfiguration;
  /** True if the managers' configuration is being loaded. */
  isReloading = false;
  readonly #t: TestContext;
  readonly #directory: string;
  readonly #servers: Map<number, JobServer>;
  /** Milliseconds by which the managers' wall clock is ahead. */
  ahead = 0;
  /** Milliseconds by which the managers' monotonic clock is ahead. */
  elapsed = 0;

  private constructor(
    t: TestContext,
    directory: string,
    store: StateStore,
    servers: ReadonlyMap<number, JobServer>,
    { ports, diskimage = {}, providers = ['east', 'west'], timing = {} }: SiteOptions,
  ) {
    this.#t = t;
    this.#directory = directory;
    this.#servers = new Map(servers);
    this.ports = ports ?? [...servers.keys()];
    this.store = store;
    this.providers = new Map(providers.map((name) => [name, new SiteProvider({ name })]));
    this.configuration = {
      diskimages: [
        { name: 'debian', digest: 'first', pause: false, keep: 2, buildTimeout: 3600, ...diskimage },
      ],
      providers: providers.map((name) => ({
        name,
        pause: false,
        uploadTimeout: 3600,
        images: [{ name: 'debian', diskimage: 'debian', pause: false }],
      })),
      timing: {
        retryDelay: 0.05,
        maxRetryDelay: 0.2,
        orphanScanInterval: 3600,
        absenceTimeout: 3600,
        ...timing,
      },
    };
  }

  static async start(t: TestContext, options: SiteOptions = {}): Promise<ManagerSite> {
    const directory = await mkdtemp(join(tmpdir(), 'manager-'));
    undoAfter(t, () => rm(directory, { recursive: true, force: true }));
    await writeFile(join(directory, 'image.qcow2'), 'an image');
    const store = await openStateStore(join(directory, 'state.sqlite'));
    undoAfter(t, () => store.close());
    const servers = new Map<number, JobServer>();
    const count = options.ports === undefined ? (options.servers ?? 1) : 0;
    for (let number = 0; number < count; number += 1) {
      const server = new JobServer();
      servers.set((await server.listen(await freePort())).port, server);
    }
    const site = new ManagerSite(t, directory, store, servers, options);
    undoAfter(t, () => Promise.all(site.ports.map((port) => site.stopServer(port))));
    return site;
  }

  /** Starts a builder that connects to all job servers by default. */
  async builder(ports: readonly number[] = this.ports): Promise<SiteBuilder> {
    const file = { format: 'qcow2', path: join(this.#directory, 'image.qcow2'), size: 8 } as const;
    const builder = new SiteBuilder({ ports, diskimages: ['debian'], providers: this.providers, file });
    undoAfter(this.#t, () => builder.die());
    await builder.start();
    return builder;
  }

  /** Starts a manager, by default with the site's store. */
  manage(store: ManagerStore = this.store): RunningManager {
    const manager = new ImageManager({
      configuration: this.configuration,
      provider: (name) => this.providers.get(name),
      store,
      servers: this.ports.map((port) => ({ host: HOST, port })),
      logger: this.log,
      pollInterval: 10,
      isReloading: async () => this.isReloading,
      now: () => Date.now() + this.ahead,
      elapsed: () => performance.now() + this.elapsed,
      onEvent: (event) => this.events.push(event),
    });
    const stop = new AbortController();
    const done = manager.run(stop.signal);
    const running = {
      manager,
      stop: async (): Promise<void> => {
        stop.abort(new Error('the manager is stopped'));
        await done;
      },
    };
    undoAfter(this.#t, () => running.stop());
    return running;
  }

  /** Returns the site's configuration with a changed entry of debian. */
  withDebian(fields: Partial<ManagedDiskImage>): ManagerConfiguration {
    const { diskimages } = this.configuration;
    return { ...this.configuration, diskimages: diskimages.map((entry) => ({ ...entry, ...fields })) };
  }

  provider(name: string): SiteProvider {
    return this.providers.get(name) as SiteProvider;
  }

  /** Stops a job server, which loses its queue. */
  async stopServer(port: number): Promise<void> {
    await this.#servers.get(port)?.close();
    this.#servers.delete(port);
  }

  /** Starts a job server on the port of a stopped one. */
  async restartServer(port: number): Promise<void> {
    const server = new JobServer();
    await server.listen(port);
    this.#servers.set(port, server);
  }

  /** Waits for a condition on the records. */
  async until(what: string, condition: (state: ManagerState) => boolean): Promise<ManagerState> {
    return await waitUntil(what, async () => {
      const state = await this.store.read();
      return condition(state) && state;
    });
  }

  /**
   * Waits until all providers have the newest build and all tasks are finished.
   *
   * @param old - a build that does not count
   * @returns the build's id
   */
  async untilInUse(old?: string): Promise<string> {
    return await waitUntil('a build in all providers', async () => {
      const { builds, uploads } = await this.store.read();
      const records = [...builds.values(), ...uploads.values()];
      if (records.some(({ state }) => !SETTLED.has(state))) return undefined;
      const inUse = (id: string): boolean =>
        [...this.providers.values()].every(
          ({ name, imageIds }) =>
            imageIds.includes(id) &&
            [...uploads.values()].some(
              (upload) => upload.imageId === id && upload.provider === name && upload.state === 'ready',
            ),
        );
      const [newest] = [...builds.values()]
        .filter(({ state, withdrawn }) => state === 'ready' && !withdrawn)
        .toSorted((one, other) => other.requestedAt - one.requestedAt || (one.id < other.id ? 1 : -1));
      return newest !== undefined && newest.id !== old && inUse(newest.id) && newest.id;
    });
  }

  /** Waits until an image is deleted from the builders and from every provider. */
  async untilGone(imageId: string): Promise<void> {
    await waitUntil(`image ${imageId} to be gone`, async () => {
      const state = (await this.store.read()).builds.get(imageId)?.state ?? 'deleted';
      const isUploaded = [...this.providers.values()].some(({ imageIds }) => imageIds.includes(imageId));
      return state === 'deleted' && !isUploaded;
    });
  }

  /** Waits until this number of managers waits for the result of a running job. */
  async untilWaiting(unique: string, clients: number): Promise<void> {
    const client = new Client({ servers: this.ports.map((port) => ({ host: HOST, port })) });
    try {
      await waitUntil(
        `${clients} waiting managers`,
        async () => (await client.statusByUnique(unique)).clients === clients,
      );
    } finally {
      await client.close();
    }
  }

  /** Waits for a line of the log. */
  async logged(pattern: RegExp): Promise<string> {
    return await waitUntil(`a line with ${pattern}`, () => this.log.lines.find((line) => pattern.test(line)));
  }

  /** Counts the log lines that match. */
  countLogged(pattern: RegExp): number {
    return this.log.lines.filter((line) => pattern.test(line)).length;
  }
}
