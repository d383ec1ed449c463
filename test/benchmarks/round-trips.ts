import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { Admin, Client } from '@nodepool-builder/gearman-node';
import { startGearmand } from '../fixtures/gearmand.ts';
import { type Benchmark, type BenchmarkContext, type Measurement, unlessAborted } from './benchmark.ts';
import { distributionOf } from './distribution.ts';
import { untilOffered } from './offered.ts';

/** Jobs in each round, one after the other. */
const JOBS = 2_000;

/** Rounds of each of the two. */
const ROUNDS = 5;

const WORKER = join(import.meta.dirname, 'null-worker.ts');

/** Jobs per second of an empty function, by this client and worker and by Debian's `gearman`, in turn. */
export const roundTrips: Benchmark = { name: 'round-trips', run };

async function run(context: BenchmarkContext): Promise<Measurement[]> {
  const server = await startGearmand();
  context.after(() => server.stop());
  const { port } = server;
  const address = { host: '127.0.0.1', port };
  const admin = new Admin(address);
  context.after(() => admin.close());
  const client = new Client({ servers: [address] });
  context.after(() => client.close());
  const gearman = ['-h', '127.0.0.1', '-p', String(port), '-f', 'null'];
  const ours = (): Promise<number> =>
    withWorker(
      context,
      admin,
      spawn(process.execPath, [WORKER, String(port)], { stdio: 'inherit' }),
      async () => {
        for (let job = 0; job < JOBS; job += 1) {
          await unlessAborted(client.submit('null', String(job)), context.signal);
        }
      },
    );
  const theirs = (): Promise<number> =>
    withWorker(context, admin, spawn('gearman', ['-w', ...gearman], { stdio: 'ignore' }), async () => {
      const child = spawn('gearman', ['-n', ...gearman], {
        stdio: ['pipe', 'ignore', 'inherit'],
        signal: context.signal,
      });
      child.stdin.end(Array.from({ length: JOBS }, (_, job) => `${job}\n`).join(''));
      const [code] = await once(child, 'close');
      if (code !== 0) throw new Error(`gearman ended with ${code}`);
    });
  const pairs: { readonly ours: number; readonly theirs: number }[] = [];
  while (pairs.length < ROUNDS) {
    const pair = { ours: await ours(), theirs: await theirs() };
    context.progress(`${pair.ours.toFixed(0)} jobs/s here, ${pair.theirs.toFixed(0)} by gearman`);
    pairs.push(pair);
  }
  const rates = (['ours', 'theirs'] as const).map((of) => median(pairs.map((pair) => pair[of])).toFixed(0));
  const ratio = median(pairs.map((pair) => pair.ours / pair.theirs));
  return [
    {
      what: `${JOBS} empty jobs, one after the other, against Debian's \`gearman\` as client and worker`,
      result: `× ${ratio.toFixed(2)} (${rates[0]} against ${rates[1]} jobs/s)`,
    },
  ];
}

/** Jobs per second of `work`, which does all of them, while the worker runs. */
async function withWorker(
  { signal }: BenchmarkContext,
  admin: Admin,
  worker: ChildProcess,
  work: () => Promise<void>,
): Promise<number> {
  const exited = once(worker, 'exit');
  try {
    await untilOffered(admin, (offered) => offered.has('null'), signal);
    const begin = performance.now();
    await work();
    return (JOBS * 1000) / (performance.now() - begin);
  } finally {
    worker.kill('SIGTERM');
    await exited;
  }
}

function median(samples: readonly number[]): number {
  return distributionOf(samples).median;
}
