import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { Admin, Client } from '@nodepool-builder/gearman-node';
import { startGearmand } from '../fixtures/gearmand.ts';
import { type Benchmark, type BenchmarkContext, type Measurement, unlessAborted } from './benchmark.ts';
import { distributionOf } from './distribution.ts';
import { untilOffered } from './offered.ts';

/** Sequential jobs in each round. */
const JOBS = 2_000;

/** Rounds of each program. The first one warms up and is not counted. */
const ROUNDS = 6;

const WORKER = join(import.meta.dirname, 'null-worker.ts');

const OURS = 'null-ours';
const THEIRS = 'null-theirs';

/** Compares jobs per second of an empty function between this client and worker and Debian's `gearman`, in turns. */
export const roundTrips: Benchmark = { name: 'round-trips', run };

async function run(context: BenchmarkContext): Promise<Measurement[]> {
  const { signal, progress } = context;
  const server = await startGearmand();
  context.after(() => server.stop());
  const address = { host: '127.0.0.1', port: server.port };
  const admin = new Admin(address);
  context.after(() => admin.close());
  const client = new Client({ servers: [address] });
  context.after(() => client.close());
  const gearman = ['-h', address.host, '-p', String(address.port), '-f', THEIRS];
  await startWorker(context, process.execPath, [WORKER, String(address.port), OURS]);
  await startWorker(context, 'gearman', ['-w', ...gearman]);
  await untilOffered(admin, (offered) => offered.has(OURS) && offered.has(THEIRS), signal);

  const rounds: { readonly ours: number; readonly theirs: number }[] = [];
  while (rounds.length < ROUNDS) {
    const ours = await jobsPerSecond(unlessAborted(submitAll(client), signal));
    const theirs = await jobsPerSecond(gearmanClient(gearman, signal));
    progress(`${ours.toFixed(0)} jobs/s here, ${theirs.toFixed(0)} jobs/s by gearman`);
    rounds.push({ ours, theirs });
  }
  const counted = rounds.slice(1);
  const [ratio, ours, theirs] = [
    counted.map((round) => round.ours / round.theirs),
    counted.map((round) => round.ours),
    counted.map((round) => round.theirs),
  ].map((samples) => distributionOf(samples).median) as [number, number, number];
  return [
    {
      what: 'Empty jobs, one after the other, our client and worker against Debian’s `gearman`',
      result: `× ${ratio.toFixed(2)} (${ours.toFixed(0)} against ${theirs.toFixed(0)} jobs/s)`,
    },
  ];
}

/** Starts a worker that runs as long as the benchmark. */
async function startWorker(
  context: BenchmarkContext,
  command: string,
  args: readonly string[],
): Promise<void> {
  const worker = spawn(command, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  await once(worker, 'spawn');
  const exited = once(worker, 'exit');
  context.after(() => {
    worker.kill('SIGTERM');
    return exited;
  });
}

async function jobsPerSecond(work: Promise<void>): Promise<number> {
  const begin = performance.now();
  await work;
  return (JOBS * 1000) / (performance.now() - begin);
}

async function submitAll(client: Client): Promise<void> {
  for (let job = 0; job < JOBS; job += 1) await client.submit(OURS, String(job));
}

/** The command `gearman` makes a job of each line of its input. Its start-up, some milliseconds, counts as well. */
async function gearmanClient(args: readonly string[], signal: AbortSignal): Promise<void> {
  const child = spawn('gearman', ['-n', ...args], { stdio: ['pipe', 'ignore', 'inherit'], signal });
  child.stdin.on('error', () => {}); // reported by the exit code
  child.stdin.end(Array.from({ length: JOBS }, (_, job) => `${job}\n`).join(''));
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`gearman ended with exit code ${code}`);
}
