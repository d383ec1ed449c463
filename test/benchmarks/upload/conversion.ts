import { execFile } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { convertImage } from '../../../packages/image-builder/src/formats/convert.ts';
import type { Benchmark, BenchmarkContext, Measurement } from '../benchmark.ts';
import { compare, figureOf, ratioOf, ratioRow, rowsOf, type Samples, type Unit } from '../comparison.ts';
import { IMAGE_LENGTH, IMAGE_SIZE, largeImage } from './large-image.ts';

const OURS = '@nodepool-builder/image-builder';
const PLAIN = '`qemu-img convert`';
const PARALLEL = '`qemu-img convert -W -m 8`';

/** Target formats, with the options that the builder passes to qemu-img. */
const TARGETS = [
  { format: 'qcow2', options: ['-O', 'qcow2'] },
  { format: 'vhd', options: ['-O', 'vpc', '-o', 'subformat=dynamic,force_size=on'] },
] as const;

const RATE: Unit = { name: 'MB/s', digits: 0 };
const MILLISECONDS: Unit = { name: 'ms', digits: 0 };
const MEBIBYTE = 2 ** 20;

/** A conversion takes a third of a second. Many rounds keep those with a busy disk from moving the median. */
const ROUNDS = 25;

/** Measures conversions to other formats, including the checks before and after them. */
export const conversion: Benchmark = { name: 'conversion', run };

async function run(context: BenchmarkContext): Promise<Measurement[]> {
  const { signal, progress } = context;
  const path = await largeImage(context);
  const measurements: Measurement[] = [];
  const small = `${path}.small`;
  await writeFile(small, Buffer.alloc(MEBIBYTE, 1));
  for (const { format, options } of TARGETS) {
    const convert = async (source: string): Promise<Samples> => {
      const target = `${source}.${format}`;
      const timed = async (work: () => Promise<unknown>): Promise<number> => {
        const begin = performance.now();
        await work();
        const milliseconds = performance.now() - begin;
        await rm(target);
        return milliseconds;
      };
      const qemuImg = (...flags: string[]): Promise<number> => {
        const args = ['convert', ...flags, '-f', 'raw', ...options, source, target];
        return timed(() => promisify(execFile)('qemu-img', args, { signal }));
      };
      const ours = (): Promise<number> =>
        timed(() => convertImage({ format: 'raw', path: source }, format, target, { signal }));
      const contenders = [
        { name: PLAIN, sample: () => qemuImg() },
        { name: PARALLEL, sample: () => qemuImg('-W', '-m', '8') },
        { name: OURS, sample: ours },
      ];
      return await compare(contenders, context, ROUNDS);
    };
    progress(`converting to ${format}`);
    const rates = figureOf(await convert(path), (milliseconds) => IMAGE_SIZE / milliseconds / 1e3);
    measurements.push(
      ...rowsOf(`${IMAGE_LENGTH} raw to ${format}`, RATE, rates),
      ...rowsOf(`1 MiB raw to ${format}`, MILLISECONDS, await convert(small)),
      ratioRow(`Ours against ${PLAIN}, to ${format}`, ratioOf(rates, OURS, PLAIN), { atLeast: 1 }),
      ratioRow(`Ours against ${PARALLEL}, to ${format}`, ratioOf(rates, OURS, PARALLEL), { atLeast: 0.95 }),
    );
  }
  return measurements;
}
