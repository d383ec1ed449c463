import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Admin, Client, Worker } from '@nodepool-builder/gearman-node';
import type { Benchmark, BenchmarkContext, Measurement } from '../benchmark.ts';
import { formatNumber } from '../comparison.ts';
import { type Distribution, distributionOf } from '../distribution.ts';
import { megabytes } from '../peak-memory.ts';
import { Program } from '../program.ts';

/** Duration of the attack in milliseconds. */
const ATTACK = 10_000;

/** Maximum stall of the event loop, in milliseconds of processor time. */
const STALL_BAR = 50;

/** Maximum memory in bytes after all hostile peers have gone: the server's own need and a reserve. */
const MEMORY_BAR = 30e6;

/** Measures an empty job while hundreds of hostile peers keep the job server busy, and the memory in use afterwards. */
export const hostilePeers: Benchmark = { name: 'hostile-peers', run };

async function run(context: BenchmarkContext): Promise<Measurement[]> {
  const program = (name: string, ...args: string[]): Program =>
    Program.start([process.execPath, join(import.meta.dirname, name), ...args], context);
  const server = program('job-server-program.ts');
  const port = await server.ask('port');
  const hostile = program('hostile-program.ts', port);
  const servers = [{ host: '127.0.0.1', port: Number(port) }];
  const worker = new Worker({ servers });
  worker.add('single', () => '');
  context.after(() => worker.close());
  const client = new Client({ servers });
  context.after(() => client.close());

  const measure = async (milliseconds: number): Promise<Distribution> => {
    const times: number[] = [];
    const end = performance.now() + milliseconds;
    while (performance.now() < end) {
      const begin = performance.now();
      await client.submit('single');
      times.push(performance.now() - begin);
      await delay(5);
    }
    return distributionOf(times);
  };
  const alone = await measure(ATTACK / 10);
  await server.ask('stall');
  const peers = await hostile.ask('start');
  context.progress(`${peers} hostile peers`);
  const attacked = await measure(ATTACK);
  const [stall = 0, , garbage = 0] = await server.askNumbers('stall');
  const [size = 0] = await server.askNumbers('memory');
  await hostile.ask('end');
  const admin = new Admin({ host: '127.0.0.1', port: Number(port) });
  context.after(() => admin.close());
  while ((await admin.status()).length > 1) await delay(100);
  const [laterSize = 0, inUse = 0] = await server.askNumbers('memory');
  return [
    { what: what('an empty job before'), result: format(alone) },
    { what: what(`an empty job next to ${peers} of them`), result: format(attacked) },
    {
      what: what('longest stall of the event loop'),
      result: `${formatNumber(stall, 1)} ms of processor time; longest garbage collection ${formatNumber(garbage, 1)} ms`,
      bar: { limit: `≤ ${STALL_BAR} ms`, met: stall <= STALL_BAR },
    },
    { what: what('memory meanwhile'), result: `${megabytes(size)} resident` },
    {
      what: what('memory when they have gone'),
      result: `${megabytes(inUse)} in use, ${megabytes(laterSize)} resident`,
      bar: { limit: `≤ ${megabytes(MEMORY_BAR)} in use`, met: inUse <= MEMORY_BAR },
    },
  ];
}

function what(part: string): string {
  return `Server under hostile peers: ${part}`;
}

function format({ count, median, p95, max }: Distribution): string {
  const [middle, most, all] = [median, p95, max].map((time) => `${formatNumber(time, 1)} ms`);
  return `median ${middle}, p95 ${most}, max ${all} of ${count}`;
}
