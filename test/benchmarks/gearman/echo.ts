import { startGearmand } from '../../fixtures/gearmand.ts';
import type { Benchmark, BenchmarkContext, Measurement } from '../benchmark.ts';
import { bestOf, compare, ratioOf, ratioRow, rowsOf } from '../comparison.ts';
import { EchoPair, JOBS_PER_SECOND } from './echo-pair.ts';
import { floor, LIBGEARMAN, type Library, NPM_PEERS, OURS, prepareLibraries } from './library-commands.ts';

const BYTES = 64;

/** Measures jobs per second of each library, as client and worker, on one gearmand. */
export const echo: Benchmark = { name: 'echo', run };

async function run(context: BenchmarkContext): Promise<Measurement[]> {
  const libraries = await prepareLibraries(context);
  const server = await startGearmand('--threads=1');
  context.after(() => server.stop());

  const measure = async (inFlight: number, measured: readonly Library[]) => {
    context.progress(`${inFlight} in flight`);
    const contenders = measured.map((library) => {
      const address = { host: '127.0.0.1', port: server.port };
      const pair = new EchoPair(library, address, { inFlight, bytes: BYTES }, context);
      return { name: library.name, sample: () => pair.jobsPerSecond() };
    });
    return await compare(contenders, context);
  };

  const one = await measure(1, [...libraries.slice(0, 2), floor, ...libraries.slice(2)]);
  const many = await measure(64, libraries);
  const best = bestOf(many, NPM_PEERS);
  return [
    ...rowsOf(`${BYTES} B, 1 in flight`, JOBS_PER_SECOND, one),
    ratioRow('Ours against libgearman, 1 in flight', ratioOf(one, OURS, LIBGEARMAN), { atLeast: 0.8 }),
    ratioRow('Ours against bare node:net, 1 in flight', ratioOf(one, OURS, floor.name), { atLeast: 0.9 }),
    ...rowsOf(`${BYTES} B, 64 in flight`, JOBS_PER_SECOND, many),
    ratioRow('Ours against libgearman, 64 in flight', ratioOf(many, OURS, LIBGEARMAN), { atLeast: 1.5 }),
    ratioRow(`Ours against the best of npm, ${best}, 64 in flight`, ratioOf(many, OURS, best), {
      atLeast: 3,
    }),
  ];
}
