import { setTimeout as delay } from 'node:timers/promises';
import { type FunctionStatus, formatAddress, type ServerAddress } from '@nodepool-builder/gearman-node';
import type { Logger } from '@nodepool-builder/image-builder';
import { SILENT_LOGGER } from '@nodepool-builder/image-builder/internal';
import { type ManagerState, type Plan, previewPlan, type StateStore } from '@nodepool-builder/image-manager';
import type { Configuration } from '../configuration/configuration.ts';
import { toManagerConfiguration } from '../configuration/manager-configuration.ts';
import type { BuilderStatus } from '../protocol/builder-status.ts';
import { askServers } from '../site/ask-servers.ts';
import { readSite } from '../site/builder-status.ts';
import { NO_MANAGER } from '../site/served-request.ts';
import { withStore } from '../site/state-view.ts';
import { CommandError, errorLine } from '../terms/command-error.ts';
import type { CloudImageRecord, CloudImageWatch } from './cloud-image-watch.ts';

/** The state of all images and builders at one time. */
export interface Site {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly configuration: Configuration;
  /** Records of the manager; none if no manager has run here. */
  readonly state: ManagerState;
  /** The manager's next steps; undefined without its records. */
  readonly plan: Plan | undefined;
  readonly builders: readonly BuilderStatus[];
  readonly servers: readonly JobServerStatus[];
  /** The images that the configuration's filters select. */
  readonly cloudImages: readonly CloudImageRecord[];
  /** Reasons why data is missing, for people. */
  readonly problems: readonly string[];
}

/** A job server, and the functions that it has; none if it does not reply. */
export interface JobServerStatus {
  /** `host:port`. */
  readonly address: string;
  readonly functions: readonly FunctionStatus[] | undefined;
}

/** Maximum age of the state that {@link SiteView.current} returns, in milliseconds. */
const INTERVAL = 2000;

/** Timeout of a job server's reply, in milliseconds. */
const TIMEOUT = 5000;

/** Prefix of the error of a store that cannot be read. */
export const RECORDS_PROBLEM = 'cannot read the records of the manager';

const NO_RECORDS: ManagerState = { builds: new Map(), uploads: new Map(), pauses: new Map() };

/** Collects the data of the page, the API and the metrics on request. All callers share one refresh. */
export class SiteView {
  readonly servers: readonly ServerAddress[];
  readonly #logger: Logger;
  readonly #cloudImages: CloudImageWatch;
  readonly #stop = new AbortController();
  #configuration: Configuration;
  /** Why a changed configuration is not in force. */
  #refused: string | undefined;
  #refresh: Promise<Site> | undefined;
  #last: Site | undefined;

  constructor(
    configuration: Configuration,
    servers: readonly ServerAddress[],
    cloudImages: CloudImageWatch,
    logger: Logger,
  ) {
    this.servers = servers;
    this.#configuration = configuration;
    this.#logger = logger;
    this.#cloudImages = cloudImages;
  }

  get configuration(): Configuration {
    return this.#configuration;
  }

  reload(configuration: Configuration): void {
    this.#configuration = configuration;
    this.#refused = undefined;
    this.#last = undefined;
  }

  /** Shows why a changed configuration is not in force, until the next reload. */
  refuse(problem: string): void {
    this.#refused = problem;
    this.#last = undefined;
  }

  /** Returns the state of the site, which is at most one interval old, or older while a job server is silent. */
  async current(): Promise<Site> {
    const last = this.#last;
    // A time in the future means that the clock was set back.
    if (last !== undefined && Math.abs(Date.now() - last.at) < INTERVAL) return last;
    const refresh = this.refresh();
    if (last === undefined) return await refresh;
    const patience = new AbortController();
    const late = delay(INTERVAL, last, { signal: patience.signal }).catch(() => last);
    return await Promise.race([refresh, late]).finally(() => patience.abort());
  }

  /** Reads the state of the site now, or joins a refresh that has begun. */
  refresh(): Promise<Site> {
    this.#refresh ??= this.#read().finally(() => {
      this.#refresh = undefined;
    });
    return this.#refresh;
  }

  /** Calls the listener with the state of the site, now and after each interval, until the signal aborts. */
  async watch(listener: (site: Site) => void, signal: AbortSignal): Promise<void> {
    const end = AbortSignal.any([signal, this.#stop.signal]);
    while (!end.aborted) {
      try {
        const site = await this.current();
        if (!end.aborted) listener(site);
      } catch (error) {
        if (!end.aborted) this.#logger.error(`cannot refresh the status page: ${errorLine(error)}`);
      }
      await delay(INTERVAL, undefined, { signal: end }).catch(() => {});
    }
  }

  /**
   * Runs work with the manager's store.
   *
   * @throws CommandError `refused` if no manager has run here; errors of `work`
   */
  async useStore<T>(work: (store: StateStore) => Promise<T>): Promise<T> {
    return await withStore(this.#configuration, work, () => {
      throw new CommandError('no manager runs with this configuration; start one', 'refused');
    });
  }

  async close(): Promise<void> {
    this.#stop.abort(new Error('the status page is being closed'));
    await this.#refresh?.catch(() => {});
  }

  async #read(): Promise<Site> {
    const { signal } = this.#stop;
    signal.throwIfAborted();
    const configuration = this.#configuration;
    const problems = this.#refused === undefined ? [] : [this.#refused];
    const [{ builders }, servers] = await Promise.all([
      readSite(this.servers, signal).catch((error: unknown) => {
        if (error instanceof CommandError) problems.push(errorLine(error));
        return { builders: [] }; // the job servers are listed as silent
      }),
      Promise.all(this.servers.map((server) => askServer(server, signal))),
    ]);
    // Read last, because a job that ended in between would seem to wait.
    const records = await this.#readRecords(configuration).catch((error: unknown) => {
      signal.throwIfAborted();
      problems.push(`${RECORDS_PROBLEM}: ${errorLine(error)}`);
      return undefined;
    });
    if (records?.isManaged === false) problems.push(NO_MANAGER);
    const silent = servers.filter(({ functions }) => functions === undefined);
    for (const { address } of silent) problems.push(`job server ${address} does not reply`);
    const site = {
      at: Date.now(),
      configuration,
      state: records?.state ?? NO_RECORDS,
      plan: records?.plan,
      builders,
      servers,
      cloudImages: this.#cloudImages.records,
      problems,
    };
    this.#last = site;
    return site;
  }

  async #readRecords(
    configuration: Configuration,
  ): Promise<{ readonly state: ManagerState; readonly plan: Plan; readonly isManaged: boolean } | undefined> {
    const read = async (store: StateStore) => {
      const state = await store.read();
      const view = { owner: store.owner, read: async () => state, requests: () => store.requests() };
      const plan = await previewPlan({
        configuration: toManagerConfiguration(configuration),
        store: view,
        servers: this.servers,
        logger: SILENT_LOGGER, // it would log the same warning at each refresh, but the page shows the error
      });
      return { state, plan, isManaged: (await store.describeLeader()) !== undefined };
    };
    return await withStore(configuration, read, () => undefined);
  }
}

async function askServer(server: ServerAddress, signal: AbortSignal): Promise<JobServerStatus> {
  const address = formatAddress(server);
  try {
    return { address, functions: await askServers([server], (admin) => admin.status(), signal, TIMEOUT) };
  } catch {
    signal.throwIfAborted();
    return { address, functions: undefined };
  }
}
