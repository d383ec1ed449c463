import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { promisify } from 'node:util';
import { convertImage } from '../../../packages/image-builder/src/formats/convert.ts';
import type { Benchmark, BenchmarkContext, Measurement } from '../benchmark.ts';
import { compare, ratioOf, ratioRow, rowsOf, type Unit } from '../comparison.ts';
import { IMAGE_LENGTH, IMAGE_SIZE, largeImage } from './large-image.ts';

const OURS = '@nodepool-builder/image-builder';
const PLAIN = '`qemu-img convert -W -m 8`';

const RATE: Unit = { name: 'MB/s', digits: 0 };

/** Measures the conversion to another format, including the checks before and after it. */
export const conversion: Benchmark = { name: 'conversion', run };

async function run(context: BenchmarkContext): Promise<Measurement[]> {
  const { signal } = context;
  const path = await largeImage(context);
  const target = `${path}.qcow2`;
  const rateOf = async (convert: () => Promise<unknown>): Promise<number> => {
    const begin = performance.now();
    await convert();
    const seconds = (performance.now() - begin) / 1000;
    await rm(target);
    return IMAGE_SIZE / seconds / 1e6;
  };
  const plain = ['convert', '-W', '-m', '8', '-f', 'raw', '-O', 'qcow2', path, target];
  const samples = await compare(
    [
      { name: PLAIN, sample: () => rateOf(() => promisify(execFile)('qemu-img', plain, { signal })) },
      {
        name: OURS,
        sample: () => rateOf(() => convertImage({ format: 'raw', path }, 'qcow2', target, { signal })),
      },
    ],
    context,
  );
  return [
    ...rowsOf(`${IMAGE_LENGTH} raw to qcow2`, RATE, samples),
    ratioRow('Ours against qemu-img', ratioOf(samples, OURS, PLAIN), { atLeast: 0.95 }),
  ];
}
