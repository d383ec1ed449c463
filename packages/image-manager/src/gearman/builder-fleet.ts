import {
  Admin,
  Client,
  formatAddress,
  GearmanError,
  type Logger,
  type ServerAddress,
} from '@nodepool-builder/gearman-node';
import type { OfferedFunctions } from '../planning/pass.ts';
import { cancelFunction } from '../protocol/image-cancel.ts';
import { stopAtBuilder } from './cancellation.ts';
import { type Canceller, type RunLimits, runJob } from './run-job.ts';

/** Timeout of a job server's reply, in milliseconds. */
const TIMEOUT = 10_000;

/** Functions that the builders offer, according to the job servers. */
export interface FleetStatus {
  readonly offered: OfferedFunctions;
  /** True if every server replied. Only then is a function that is not listed known to be gone. */
  readonly isComplete: boolean;
  /** Ids of images that more than one builder offers at one job server. */
  readonly copied: ReadonlySet<string>;
}

/** A job server with its two connections: one for its status, one for jobs. */
interface Server {
  readonly address: ServerAddress;
  readonly name: string;
  readonly admin: Admin;
  readonly client: Client;
  /** Numbers of workers by function in the server's last reply; empty while it does not reply. */
  workers: ReadonlyMap<string, number>;
  isAway: boolean;
}

const VERBS: Readonly<Record<string, keyof OfferedFunctions>> = {
  'image-build': 'builds',
  'image-build-paused': 'builds',
  'image-upload': 'uploads',
  'image-delete': 'deletes',
};

/** All builders behind the job servers. The manager reaches them only through Gearman. */
export class BuilderFleet implements AsyncDisposable {
  readonly #servers: readonly Server[];
  readonly #logger: Logger;
  /** The last result of {@link status}. Before the first, it is empty and not complete. */
  lastStatus: FleetStatus = {
    offered: { builds: new Set(), uploads: new Set(), deletes: new Set() },
    isComplete: false,
    copied: new Set(),
  };
  #asking: Promise<FleetStatus> | undefined;
  /** Servers take turns, so that the jobs are spread over them. */
  #turn = 0;
  #isClosed = false;

  constructor(servers: readonly ServerAddress[], logger: Logger) {
    this.#logger = logger;
    this.#servers = servers.map((address) => ({
      address,
      name: formatAddress(address),
      admin: new Admin(address, { timeout: TIMEOUT }),
      client: new Client({ servers: [address], clientId: 'image-manager', logger, timeout: TIMEOUT }),
      workers: new Map(),
      isAway: false,
    }));
  }

  /**
   * Queries all job servers for the functions that builders offer. Servers that do not reply are left out, with a
   * warning. Concurrent callers share one result.
   */
  status(): Promise<FleetStatus> {
    this.#asking ??= this.#askAll().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #askAll(): Promise<FleetStatus> {
    await Promise.all(this.#servers.map((server) => this.#ask(server)));
    const [offered, known] = [this.#offeredBy(1), this.lastStatus.offered];
    this.lastStatus = {
      // Reused while nothing changes, because the leader keeps the set of its last plan, and two copies of very many
      // names are large.
      offered: offersTheSame(offered, known) ? known : offered,
      isComplete: this.#servers.every(({ isAway }) => !isAway),
      copied: this.#offeredBy(2).uploads,
    };
    return this.lastStatus;
  }

  /**
   * Has a builder run a job, and waits for its result.
   *
   * @param unique submissions with the same key share one job and its result; the upload-id of an upload
   * @throws GearmanError, see {@link runJob}
   */
  async run(
    wanted: string,
    argument: Readonly<Record<string, unknown>>,
    unique: string,
    limits: RunLimits,
  ): Promise<Buffer> {
    const functionName = this.#nameOffered(wanted);
    const { client, admin, address } = this.#serverFor(functionName);
    const isBuild = wanted.startsWith('image-build:');
    const imageId = isBuild
      ? String(argument['image-id'])
      : functionName.slice(functionName.indexOf(':') + 1);
    const isRunning = async (handle: string): Promise<boolean> =>
      (await client.status(handle).catch(() => undefined))?.running === true;
    const mayStop = async (): Promise<boolean> =>
      (await admin.status()).some((one) => one.name === cancelFunction(imageId) && one.availableWorkers > 0);
    const stop = async (by: string, isEarly: boolean): Promise<void> => {
      if (functionName.startsWith('image-delete:')) return;
      if (!isEarly && !(await mayStop().catch(() => false))) return; // such as a builder of nodepool
      await stopAtBuilder([address], imageId, by, isBuild ? undefined : unique).catch((error) =>
        this.#logger.warn(`${imageId} may still run at its builder, which was not stopped: ${String(error)}`),
      );
    };
    const cancel = async (handle: string, { by, isEarly }: Canceller): Promise<void> => {
      if (await isRunning(handle)) {
        // Precedes the cancellation. Otherwise our job server would have the builder stop on behalf of an operator.
        await stop(by, isEarly);
        if (isEarly) return;
      }
      // The job may have ended since. If the server cannot cancel it, at worst a builder runs it once more.
      await admin.cancelJob(handle).catch(() => {});
      if (isEarly && (await isRunning(handle))) await stop(by, isEarly); // a builder had just started it
    };
    return await runJob(client, functionName, JSON.stringify({ ...argument, reason: true }), unique, {
      ...limits,
      cancel,
    });
  }

  /** Closes all connections. Pending queries count as failed. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#servers.flatMap(({ admin, client }) => [admin.close(), client.close()]));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /**
   * Returns the function of a builder whose configuration pauses a disk image, unless another builder offers the usual
   * one.
   */
  #nameOffered(functionName: string): string {
    const paused = functionName.replace(/^image-build:/, 'image-build-paused:');
    const isOffered = (name: string): boolean =>
      this.#servers.some(({ workers }) => (workers.get(name) ?? 0) > 0);
    return !isOffered(functionName) && isOffered(paused) ? paused : functionName;
  }

  /** Chooses a server at which a builder offers the function; otherwise one that replies, where the job then waits. */
  #serverFor(functionName: string): Server {
    this.#turn += 1;
    const inTurn = this.#servers.map((_, index) =>
      this.#servers.at((this.#turn + index) % this.#servers.length),
    );
    const server =
      inTurn.find((candidate) => (candidate?.workers.get(functionName) ?? 0) > 0) ??
      inTurn.find((candidate) => candidate?.isAway === false) ??
      inTurn[0];
    if (server === undefined) throw new TypeError('no job server is configured');
    return server;
  }

  async #ask(server: Server): Promise<void> {
    try {
      const status = await server.admin.status();
      server.workers = new Map(status.map(({ name, availableWorkers }) => [name, availableWorkers]));
      if (server.isAway) this.#logger.info(`job server ${server.name} responds again`);
      server.isAway = false;
    } catch (error) {
      if (!(error instanceof GearmanError)) throw error;
      if (!server.isAway && !this.#isClosed) {
        this.#logger.warn(`job server ${server.name} does not respond: ${error.message}`);
      }
      server.workers = new Map();
      server.isAway = true;
    }
  }

  /** Returns the functions, by verb, for which a server has at least this many workers. */
  #offeredBy(workers: number): OfferedFunctions {
    const offered = { builds: new Set<string>(), uploads: new Set<string>(), deletes: new Set<string>() };
    for (const server of this.#servers) {
      for (const [name, count] of server.workers) {
        const colon = name.indexOf(':');
        const kind = VERBS[name.slice(0, Math.max(colon, 0))];
        if (kind !== undefined && count >= workers) offered[kind].add(name.slice(colon + 1));
      }
    }
    return offered;
  }
}

const KINDS = ['builds', 'uploads', 'deletes'] as const satisfies readonly (keyof OfferedFunctions)[];

/** Returns whether builders offer the same functions in both replies. */
export function offersTheSame(one: OfferedFunctions, other: OfferedFunctions): boolean {
  return KINDS.every(
    (kind) => one[kind].size === other[kind].size && [...one[kind]].every((name) => other[kind].has(name)),
  );
}

/**
 * Returns the start of each expected image's absence from all builders, by image-id. While a job server does not reply,
 * no absence starts or ends.
 *
 * @param since the absences so far
 * @param now the start of new absences
 */
export function absencesIn(
  { offered, isComplete }: FleetStatus,
  expected: Iterable<string>,
  since: ReadonlyMap<string, number>,
  now: number,
): ReadonlyMap<string, number> {
  if (!isComplete) return since;
  const absent = [...expected].filter((id) => !offered.uploads.has(id));
  return new Map(absent.map((id) => [id, since.get(id) ?? now]));
}
