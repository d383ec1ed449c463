import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Benchmark, BenchmarkContext, Measurement } from '../benchmark.ts';
import { bestOf, compare, ratioOf, ratioRow, rowsOf, type Unit } from '../comparison.ts';
import { megabytes } from '../peak-memory.ts';
import { Program } from '../program.ts';
import { IMAGE_LENGTH, largeImage } from './large-image.ts';

/** Digests that an upload needs, each computed by a program that computes only this one, with Node's crypto library. */
const DIGESTS = ['md5', 'sha256'].map((digest) => ({ digest, name: `\`openssl dgst -${digest}\`` }));
const OURS = '@nodepool-builder/image-builder, md5 and sha256';
const THEIRS = 'openstacksdk, md5 and sha256';

const ROUNDS = 7;

/** Memory limit in bytes. */
const MEMORY_BAR = 150e6;

const SECONDS: Unit = { name: 's', digits: 2 };

/** Measures an upload with its digests to a server that is not the bottleneck. */
export const wire: Benchmark = { name: 'wire', run };

async function run(context: BenchmarkContext): Promise<Measurement[]> {
  const { signal } = context;
  const sink = Program.start(['/usr/bin/python3', join(import.meta.dirname, 'sink.py')], context);
  const address = await sink.ask('address');
  const image = await largeImage(context);
  const uploader = Program.start(
    [process.execPath, join(import.meta.dirname, 'uploader.ts'), address],
    context,
  );
  const sdk = Program.start(
    ['/usr/bin/python3', join(import.meta.dirname, 'openstacksdk.py'), address],
    context,
  );

  let peak = 0;
  const upload =
    (...words: string[]) =>
    async (): Promise<number> => {
      const [seconds = 0, memory = 0] = await uploader.askNumbers([image, ...words].join(' '));
      peak = Math.max(peak, memory);
      return seconds;
    };
  const digestSample = (digest: string) => async (): Promise<number> => {
    const begin = performance.now();
    await promisify(execFile)('openssl', ['dgst', `-${digest}`, image], { signal });
    return (performance.now() - begin) / 1000;
  };
  const samples = await compare(
    [
      ...DIGESTS.map(({ digest, name }) => ({ name, sample: digestSample(digest) })),
      { name: OURS, sample: upload() },
      { name: '@nodepool-builder/image-builder, known checksums', sample: upload('known') },
      { name: THEIRS, sample: async () => Number(await sdk.ask(image)) },
    ],
    context,
    ROUNDS,
  );
  const slowest = bestOf(
    samples,
    DIGESTS.map(({ name }) => name),
  );
  return [
    ...rowsOf(`${IMAGE_LENGTH} to a server that discards it`, SECONDS, samples),
    ratioRow(`Ours against the slowest digest, ${slowest}`, ratioOf(samples, OURS, slowest), {
      atMost: 1.15,
    }),
    ratioRow('Ours against openstacksdk', ratioOf(samples, OURS, THEIRS), { atMost: 0.6 }),
    {
      what: '**Peak memory of the process that uploads**',
      result: megabytes(peak),
      bar: { limit: `< ${megabytes(MEMORY_BAR)}`, met: peak < MEMORY_BAR },
    },
  ];
}
