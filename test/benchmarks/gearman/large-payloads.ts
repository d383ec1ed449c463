import type { Benchmark, BenchmarkContext, Measurement } from '../benchmark.ts';
import { compare, ratioOf, ratioRow, rowsOf } from '../comparison.ts';
import { EchoPair } from './echo-pair.ts';
import { LIBGEARMAN, OURS, prepareLibraries } from './library-commands.ts';
import { linkNamespaces, startGearmandInside } from './linked-namespaces.ts';

const BYTES = 2 ** 20;

/**
 * Measures results of 1 MiB over a link with the MTU of Ethernet. Over loopback, with its MTU of 64 KiB, libgearman
 * stalls because its socket buffers are smaller.
 */
export const largePayloads: Benchmark = { name: 'large-payloads', run };

async function run(context: BenchmarkContext): Promise<Measurement[]> {
  const what = '1 MiB, 1 in flight, MTU 1500';
  if (process.getuid?.() !== 0) {
    return [{ what, result: 'not measured: only root may make network namespaces' }];
  }
  const libraries = await prepareLibraries(context);
  const namespaces = await linkNamespaces(context);
  const server = await startGearmandInside(namespaces, context);
  const contenders = libraries.map((library) => {
    const pair = new EchoPair(library, server, { inFlight: 1, bytes: BYTES }, context, namespaces.peers);
    return { name: library.name, sample: async () => ((await pair.jobsPerSecond()) * BYTES) / 1e6 };
  });
  const samples = await compare(contenders, context);
  return [
    ...rowsOf(what, { name: 'MB/s', digits: 0 }, samples),
    ratioRow('Ours against libgearman, 1 MiB', ratioOf(samples, OURS, LIBGEARMAN), { atLeast: 0.9 }),
  ];
}
