import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startNginx } from '../../fixtures/nginx.ts';
import type { Benchmark, BenchmarkContext, Measurement } from '../benchmark.ts';
import { compare, ratioOf, ratioRow, rowsOf, type Unit } from '../comparison.ts';
import { megabytes } from '../peak-memory.ts';
import { Program } from '../program.ts';
import { packedImage } from './packed-image.ts';

const GIB = 2 ** 30;

const SIZE = 2 * GIB;

const PIPELINE = 'curl, zstd, tee, sha256sum and md5sum';
const OURS = '@nodepool-builder/zuul-images';

/** Shell pipeline that administrators use. It writes the digests to files. */
const SCRIPT =
  'curl --silent --fail "$1" | zstd -d | tee >(sha256sum > "$2.sha256") >(md5sum > "$2.md5") > "$2"';

const ROUNDS = 3;

/** Memory limit in bytes. */
const MEMORY_BAR = 250e6;

const SECONDS: Unit = { name: 's', digits: 2 };

/** Measures the time to unpack and hash an image from a server that is not the bottleneck. */
export const pipeline: Benchmark = { name: 'pipeline', run };

async function run(context: BenchmarkContext): Promise<Measurement[]> {
  const { signal, after } = context;
  const nginx = await startNginx();
  after(() => nginx.stop());
  const image = await packedImage(nginx.directory, SIZE, context);
  const directory = await mkdtemp(join(tmpdir(), 'bench-download-'));
  after(() => rm(directory, { recursive: true }));
  const url = `${nginx.url}/${image.name}`;
  const destination = join(directory, 'image.raw');
  const downloader = Program.start([process.execPath, join(import.meta.dirname, 'downloader.ts')], context);

  let peak = 0;
  const download = async (): Promise<number> => {
    const [seconds = 0, memory = 0] = await downloader.askNumbers(`${url} ${destination} 4`);
    peak = Math.max(peak, memory);
    await rm(destination);
    return seconds;
  };
  const shellPipeline = async (): Promise<number> => {
    const begin = performance.now();
    await promisify(execFile)('bash', ['-c', SCRIPT, 'bash', url, destination], { signal });
    const seconds = (performance.now() - begin) / 1000;
    await rm(destination);
    return seconds;
  };
  const samples = await compare(
    [
      { name: PIPELINE, sample: shellPipeline },
      { name: OURS, sample: download },
    ],
    context,
    ROUNDS,
  );
  const packed = (image.packed / GIB).toFixed(1);
  return [
    ...rowsOf(`${SIZE / GIB} GiB raw from ${packed} GiB of zstd`, SECONDS, samples),
    ratioRow('Ours against the pipeline', ratioOf(samples, OURS, PIPELINE), { atMost: 1.1 }),
    {
      what: '**Peak memory of the process that downloads**',
      result: megabytes(peak),
      bar: { limit: `< ${megabytes(MEMORY_BAR)}`, met: peak < MEMORY_BAR },
    },
  ];
}
