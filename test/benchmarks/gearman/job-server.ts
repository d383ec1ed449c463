import { join } from 'node:path';
import { startGearmand } from '../../fixtures/gearmand.ts';
import type { Benchmark, BenchmarkContext, Measurement } from '../benchmark.ts';
import { compare, ratioOf, ratioRow, rowsOf } from '../comparison.ts';
import { Program } from '../program.ts';
import { EchoPair, JOBS_PER_SECOND } from './echo-pair.ts';
import { libgearman, ours } from './library-commands.ts';

const OURS = '@nodepool-builder/gearman-node JobServer';

const FLOOR = 'bare node:net with constant packets';

const ONE_THREAD = 'gearmand --threads=1';
const DEFAULT_THREADS = 'gearmand --threads=4';

/** Minimum ratios to gearmand with one thread and with its default, for each library at both ends. */
const BARS = { libgearman: [0.7, 0.9], ours: [1, 1] } as const;

/** Measures jobs per second through this project's job server and gearmand, with the same library at both ends. */
export const jobServer: Benchmark = { name: 'job-server', run };

async function run(context: BenchmarkContext): Promise<Measurement[]> {
  const gearmands: [name: string, port: number][] = [];
  for (const name of [ONE_THREAD, DEFAULT_THREADS]) {
    const server = await startGearmand(name.slice('gearmand '.length));
    context.after(() => server.stop());
    gearmands.push([name, server.port]);
  }
  const start = async (program: string): Promise<number> =>
    Number(await Program.start([process.execPath, join(import.meta.dirname, program)], context).ask('port'));
  const port = await start('job-server-program.ts');

  const rows: Measurement[] = [];
  for (const [library, [ofOne, ofDefault]] of [
    [await libgearman(context), BARS.libgearman],
    [ours, BARS.ours],
  ] as const) {
    for (const inFlight of [1, 64]) {
      const what = `Server under ${library.name}, ${inFlight} in flight`;
      context.progress(what);
      // The reference server supports one worker and one client.
      const servers: [name: string, port: number][] = [
        ...gearmands,
        [OURS, port],
        [FLOOR, await start('floor-server.ts')],
      ];
      const contenders = servers.map(([name, serverPort]) => {
        const address = { host: '127.0.0.1', port: serverPort };
        const pair = new EchoPair(library, address, { inFlight, bytes: 64 }, context);
        return { name, sample: () => pair.jobsPerSecond() };
      });
      const samples = await compare(contenders, context);
      const ratio = (to: string, atLeast: number): Measurement =>
        ratioRow(`${what}: ours against ${to}`, ratioOf(samples, OURS, to), { atLeast });
      rows.push(
        ...rowsOf(what, JOBS_PER_SECOND, samples),
        ratio(ONE_THREAD, ofOne),
        ratio(DEFAULT_THREADS, ofDefault),
      );
    }
  }
  return rows;
}
