import {
  Admin,
  Client,
  type FunctionStatus,
  formatAddress,
  GearmanError,
  type Logger,
  type ServerAddress,
} from '@nodepool-builder/gearman-node';
import type { OfferedFunctions } from '../planning/step.ts';
import { offeredFunctions } from './offered-functions.ts';
import { type RunLimits, runJob } from './run-job.ts';

/** How long a job server may take for an answer, in milliseconds. */
const TIMEOUT = 10_000;

/** What {@link BuilderFleet} is made of. */
export interface BuilderFleetOptions {
  readonly servers: readonly ServerAddress[];
  readonly logger: Logger;
}

/** What the builders offer, as the job servers say. */
export interface Observation {
  readonly offered: OfferedFunctions;
  /** Whether every server answered: only then is what is not offered known to be gone. */
  readonly isComplete: boolean;
  /** Ids of images that more than one builder offers at one job server. */
  readonly copied: ReadonlySet<string>;
}

/** The two ways to a job server: what it knows, and jobs for the builders behind it. */
interface Server {
  readonly name: string;
  readonly admin: Admin;
  readonly client: Client;
  /** Functions with a worker, as it last said; none while it does not answer. */
  functions: ReadonlySet<string>;
  /** Functions with several workers. */
  shared: ReadonlySet<string>;
  isAway: boolean;
}

/** All builders, as the job servers show them: there is no other way to a builder. */
export class BuilderFleet implements AsyncDisposable {
  readonly #servers: readonly Server[];
  readonly #logger: Logger;
  #observing: Promise<Observation> | undefined;
  /** Servers take turns, so that one does not get all the jobs. */
  #turn = 0;
  #isClosed = false;

  constructor({ servers, logger }: BuilderFleetOptions) {
    this.#logger = logger;
    this.#servers = servers.map((address) => ({
      name: formatAddress(address),
      admin: new Admin(address, { timeout: TIMEOUT }),
      client: new Client({ servers: [address], clientId: 'image-manager', logger, timeout: TIMEOUT }),
      functions: new Set(),
      shared: new Set(),
      isAway: false,
    }));
  }

  /**
   * Asks all job servers what the builders offer. Servers that do not answer are left out, with a warning. Who asks
   * while it is being found out gets the same answer.
   */
  observe(): Promise<Observation> {
    this.#observing ??= this.#observe().finally(() => {
      this.#observing = undefined;
    });
    return this.#observing;
  }

  async #observe(): Promise<Observation> {
    await Promise.all(this.#servers.map((server) => this.#ask(server)));
    return {
      offered: offeredFunctions(this.#servers.flatMap(({ functions }) => [...functions])),
      isComplete: this.#servers.every(({ isAway }) => !isAway),
      copied: offeredFunctions(this.#servers.flatMap(({ shared }) => [...shared])).uploads,
    };
  }

  /**
   * Has a builder do a job, and waits for its result.
   *
   * @param unique one job for all who submit it: who asks again for what still runs gets its result
   * @throws GearmanError, see {@link runJob}
   */
  async run(functionName: string, argument: unknown, unique: string, limits: RunLimits): Promise<Buffer> {
    const { client, admin } = this.#serverFor(functionName);
    const withdraw = async (handle: string): Promise<void> => {
      // It may have ended by now; and a job server that refuses, or is away, gets the job begun once more at worst.
      await admin.cancelJob(handle).catch(() => {});
    };
    return await runJob(client, functionName, JSON.stringify(argument), unique, { ...limits, withdraw });
  }

  /** Hangs up. What is being asked is then taken for unanswered. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#servers.flatMap(({ admin, client }) => [admin.close(), client.close()]));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** One behind which a builder offers the function; else any that answers, where the job waits for a builder. */
  #serverFor(functionName: string): Server {
    this.#turn += 1;
    const inTurn = this.#servers.map((_, index) =>
      this.#servers.at((this.#turn + index) % this.#servers.length),
    );
    const server =
      inTurn.find((candidate) => candidate?.functions.has(functionName)) ??
      inTurn.find((candidate) => candidate?.isAway === false) ??
      inTurn[0];
    if (server === undefined) throw new TypeError('there is no job server');
    return server;
  }

  async #ask(server: Server): Promise<void> {
    try {
      const status = await server.admin.status();
      server.functions = functionsWith(status, 1);
      server.shared = functionsWith(status, 2);
      if (server.isAway) this.#logger.info(`job server ${server.name} answers again`);
      server.isAway = false;
    } catch (error) {
      if (!(error instanceof GearmanError)) throw error;
      if (!server.isAway && !this.#isClosed) {
        this.#logger.warn(`job server ${server.name} does not answer: ${error.message}`);
      }
      server.functions = new Set();
      server.shared = new Set();
      server.isAway = true;
    }
  }
}

/** Functions with at least that many workers. */
function functionsWith(status: readonly FunctionStatus[], workers: number): ReadonlySet<string> {
  return new Set(
    status.filter(({ availableWorkers }) => availableWorkers >= workers).map(({ name }) => name),
  );
}
