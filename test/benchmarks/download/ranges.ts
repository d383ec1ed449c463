import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startNginx } from '../../fixtures/nginx.ts';
import type { Benchmark, BenchmarkContext, Measurement } from '../benchmark.ts';
import { compare, ratioOf, ratioRow, rowsOf, type Unit } from '../comparison.ts';
import { Program } from '../program.ts';
import { packedImage } from './packed-image.ts';

const SIZE = 2 ** 27;

/** nginx's rate limit per connection in bytes per second. With a higher one, unpacking would be the bottleneck. */
const RATE = '2m';

const CURL = 'curl, one stream';
const ONE = '@nodepool-builder/zuul-images, one connection';
const FOUR = '@nodepool-builder/zuul-images, four connections (default)';

const ROUNDS = 3;

const RATE_UNIT: Unit = { name: 'MB/s', digits: 0 };

/** Measures the gain from concurrent ranges if the server limits the rate of each connection. */
export const ranges: Benchmark = { name: 'ranges', run };

async function run(context: BenchmarkContext): Promise<Measurement[]> {
  const { signal, after } = context;
  const nginx = await startNginx(`limit_rate ${RATE};`);
  after(() => nginx.stop());
  const image = await packedImage(nginx.directory, SIZE, context);
  const directory = await mkdtemp(join(tmpdir(), 'bench-download-'));
  after(() => rm(directory, { recursive: true }));
  const destination = join(directory, 'image.raw');
  const downloader = Program.start([process.execPath, join(import.meta.dirname, 'downloader.ts')], context);
  const url = `${nginx.url}/${image.name}`;
  const curl = async (): Promise<number> => {
    const begin = performance.now();
    await promisify(execFile)('curl', ['--silent', '--fail', '--output', destination, url], { signal });
    const seconds = (performance.now() - begin) / 1000;
    await rm(destination);
    return image.packed / 1e6 / seconds;
  };
  const download = (connections: number) => async (): Promise<number> => {
    const [seconds = 0] = await downloader.askNumbers(`${url} ${destination} ${connections}`);
    await rm(destination);
    return image.packed / 1e6 / seconds;
  };
  const samples = await compare(
    [
      { name: CURL, sample: curl },
      { name: ONE, sample: download(1) },
      { name: FOUR, sample: download(4) },
    ],
    context,
    ROUNDS,
  );
  return [
    ...rowsOf(`nginx, limited to 2 MB/s per connection`, RATE_UNIT, samples),
    ratioRow('Four connections against one stream', ratioOf(samples, FOUR, CURL), { atLeast: 3 }),
  ];
}
