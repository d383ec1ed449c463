import { join } from 'node:path';
import { startGearmand } from '../../fixtures/gearmand.ts';
import type { Benchmark, BenchmarkContext, Measurement } from '../benchmark.ts';
import { bestOf, compare, ratioOf, ratioRow, rowsOf } from '../comparison.ts';
import { Program } from '../program.ts';
import { EchoPair, JOBS_PER_SECOND } from './echo-pair.ts';
import { libgearman, ours } from './library-commands.ts';

const OURS = '@nodepool-builder/gearman-node JobServer';

/** Values of gearmand's `--threads`: the fastest, and the default. */
const THREADS = [1, 4];

/** Jobs per second through this project's job server and through gearmand, with the same libraries on both ends. */
export const jobServer: Benchmark = { name: 'job-server', run };

async function run(context: BenchmarkContext): Promise<Measurement[]> {
  const gearmands: [name: string, port: number][] = [];
  for (const threads of THREADS) {
    const server = await startGearmand(`--threads=${threads}`);
    context.after(() => server.stop());
    gearmands.push([`gearmand --threads=${threads}`, server.port]);
  }
  const program = join(import.meta.dirname, 'job-server-program.ts');
  const port = Number(await Program.start([process.execPath, program], context).ask('port'));
  const servers: [name: string, port: number][] = [...gearmands, [OURS, port]];

  const rows: Measurement[] = [];
  for (const [library, atLeast] of [
    [await libgearman(context), 0.7],
    [ours, 1],
  ] as const) {
    for (const inFlight of [1, 64]) {
      const what = `Server under ${library.name}, ${inFlight} in flight`;
      context.progress(what);
      const contenders = servers.map(([name, serverPort]) => {
        const address = { host: '127.0.0.1', port: serverPort };
        const pair = new EchoPair(library, address, { inFlight, bytes: 64 }, context);
        return { name, sample: () => pair.jobsPerSecond() };
      });
      const samples = await compare(contenders, context);
      const names = gearmands.map(([name]) => name);
      const best = bestOf(samples, names);
      rows.push(
        ...rowsOf(what, JOBS_PER_SECOND, samples),
        ratioRow(`${what}: ours against ${best}`, ratioOf(samples, OURS, best), { atLeast }),
      );
    }
  }
  return rows;
}
