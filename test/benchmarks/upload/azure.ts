import { join } from 'node:path';
import type { Benchmark, BenchmarkContext, Measurement } from '../benchmark.ts';
import { Program } from '../program.ts';
import { measureBlockUpload } from './block-upload.ts';

const BLOCK_SIZE = 4 * 2 ** 20;

/** Measures uploads to a managed disk against the Azure double, which runs in its own process. */
export const azure: Benchmark = { name: 'azure', run };

async function run(context: BenchmarkContext): Promise<Measurement[]> {
  const double = Program.start([process.execPath, join(import.meta.dirname, 'azure-double.ts')], context);
  const address = await double.ask('address');
  const pages = await double.ask('pages');
  const environment = JSON.parse(await double.ask('environment')) as Record<string, string>;
  return await measureBlockUpload(
    {
      name: 'an Azure managed disk',
      provider: '@nodepool-builder/provider-azure',
      blockSize: BLOCK_SIZE,
      concurrency: 8,
      entry: {
        type: 'azure',
        endpoint: address,
        location: 'westeurope',
        'resource-group': 'images',
        'subscription-id': '00000000-0000-0000-0000-000000000001',
        'azure-credential': 'managed-identity',
      },
      environment,
      hasDeltas: false,
      prepare: (blocks) =>
        Promise.resolve({
          address: pages,
          blocks: blocks.map(({ index }) => ({
            index,
            target: '/sink/bare/abcd?comp=page',
            headers: { 'x-ms-range': `bytes=${index * BLOCK_SIZE}-${(index + 1) * BLOCK_SIZE - 1}` },
          })),
        }),
      double,
    },
    context,
  );
}
