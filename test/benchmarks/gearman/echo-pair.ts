import type { BenchmarkContext } from '../benchmark.ts';
import type { Unit } from '../comparison.ts';
import { type Command, Program } from '../program.ts';
import type { Server } from './libraries/node-library.ts';
import type { Library } from './library-commands.ts';

export const JOBS_PER_SECOND: Unit = { name: 'jobs/s', digits: 0 };

/** Duration of a sample. */
const MILLISECONDS = 250;

/** Duration of the first sample. With one job in flight, the JIT compiler needs thousands of jobs. */
const WARM_UP = 2000;

/** Job parameters of a pair. */
export interface EchoJobs {
  readonly inFlight: number;
  readonly bytes: number;
}

/** A client and a worker of one library, each in a process. The worker returns the payload of each job. */
export class EchoPair {
  readonly #client: Program;
  readonly #jobs: EchoJobs;
  #milliseconds = WARM_UP;

  /** @param inside wraps a command so that it runs in a network namespace */
  constructor(
    library: Library,
    { host, port }: Server,
    jobs: EchoJobs,
    context: BenchmarkContext,
    inside: (command: Command) => Command = (command) => command,
  ) {
    const functionName = `${library.name} ${jobs.inFlight}`;
    const start = (role: string, ...more: number[]) =>
      Program.start(inside(library.command(role, host, port, functionName, ...more)), context);
    start('worker', jobs.inFlight);
    this.#client = start('client');
    this.#jobs = jobs;
  }

  /** Keeps this number of jobs in flight for a while, and longer the first time. */
  async jobsPerSecond(): Promise<number> {
    const { inFlight, bytes } = this.#jobs;
    const order = `${inFlight} ${bytes} ${this.#milliseconds}`;
    const [jobs = 0, seconds = 0] = await this.#client.askNumbers(order);
    this.#milliseconds = MILLISECONDS;
    return jobs / seconds;
  }
}
