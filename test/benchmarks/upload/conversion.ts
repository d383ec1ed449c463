import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { promisify } from 'node:util';
import { convertImage } from '../../../packages/image-builder/src/formats/convert.ts';
import type { Benchmark, BenchmarkContext, Measurement } from '../benchmark.ts';
import { compare, ratioOf, ratioRow, rowsOf, type Unit } from '../comparison.ts';
import { IMAGE_LENGTH, IMAGE_SIZE, largeImage } from './large-image.ts';

const OURS = '@nodepool-builder/image-builder';
const PLAIN = '`qemu-img convert`';
const PARALLEL = '`qemu-img convert -W -m 8`';

/** Formats to convert to, with the options that the builder gives qemu-img. */
const TARGETS = [
  { format: 'qcow2', options: ['-O', 'qcow2'] },
  { format: 'vhd', options: ['-O', 'vpc', '-o', 'subformat=dynamic,force_size=on'] },
] as const;

const RATE: Unit = { name: 'MB/s', digits: 0 };

/** Measures the conversion to other formats, including the checks before and after it. */
export const conversion: Benchmark = { name: 'conversion', run };

async function run(context: BenchmarkContext): Promise<Measurement[]> {
  const { signal, progress } = context;
  const path = await largeImage(context);
  const measurements: Measurement[] = [];
  for (const { format, options } of TARGETS) {
    progress(`converting to ${format}`);
    const target = `${path}.${format}`;
    const rateOf = async (convert: () => Promise<unknown>): Promise<number> => {
      const begin = performance.now();
      await convert();
      const seconds = (performance.now() - begin) / 1000;
      await rm(target);
      return IMAGE_SIZE / seconds / 1e6;
    };
    const qemuImg = (...flags: string[]): Promise<number> => {
      const args = ['convert', ...flags, '-f', 'raw', ...options, path, target];
      return rateOf(() => promisify(execFile)('qemu-img', args, { signal }));
    };
    const ours = (): Promise<number> =>
      rateOf(() => convertImage({ format: 'raw', path }, format, target, { signal }));
    const samples = await compare(
      [
        { name: PLAIN, sample: () => qemuImg() },
        { name: PARALLEL, sample: () => qemuImg('-W', '-m', '8') },
        { name: OURS, sample: ours },
      ],
      context,
    );
    measurements.push(
      ...rowsOf(`${IMAGE_LENGTH} raw to ${format}`, RATE, samples),
      ratioRow(`Ours against ${PLAIN}, to ${format}`, ratioOf(samples, OURS, PLAIN), { atLeast: 1 }),
      ratioRow(`Ours against ${PARALLEL}, to ${format}`, ratioOf(samples, OURS, PARALLEL), { atLeast: 0.95 }),
    );
  }
  return measurements;
}
