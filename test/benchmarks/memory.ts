import { stat, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@nodepool-builder/gearman-node';
import { startGearmand } from '../fixtures/gearmand.ts';
import { createSite } from '../fixtures/site.ts';
import { type Benchmark, type BenchmarkContext, type Measurement, unlessAborted } from './benchmark.ts';
import { spawnCompiled, stop } from './daemon.ts';
import { megabytes, peakMemory } from './peak-memory.ts';

const MIB = 2 ** 20;

const SMALL = 64 * MIB;
const LARGE = 4096 * MIB;

/** Disk space in GiB for the built, converted and uploaded image, with a reserve. */
const NEEDED = 3.25 * LARGE;

/** Maximum growth of memory for an image 64 times as large, because of garbage that is not yet collected. */
const BAR = 1.25;

const BUILDER = join(import.meta.dirname, 'filler-builder.ts');

/** Measures the peak memory of a daemon that builds, converts and uploads a small and a large image. */
export const memory: Benchmark = { name: 'memory', run };

async function run(context: BenchmarkContext): Promise<Measurement[]> {
  const { bavail, bsize } = await statfs(tmpdir());
  if (bavail * bsize < NEEDED) {
    const needed = (NEEDED / 2 ** 30).toFixed(0);
    throw new Error(
      `memory needs ${needed} GiB in ${tmpdir()}; free disk space, or set TMPDIR to another directory`,
    );
  }
  const small = await measure(context, SMALL);
  const large = await measure(context, LARGE);
  const ratio = large.peak / small.peak;
  const what = 'Peak memory of the daemon that builds, converts and uploads an image';
  return [
    { what: 'Peak memory of a daemon that has just started', result: megabytes(small.started) },
    { what: `${what} of ${SMALL / MIB} MiB`, result: megabytes(small.peak) },
    { what: `${what} of ${LARGE / MIB} MiB`, result: megabytes(large.peak) },
    {
      what: `Peak memory, ${LARGE / MIB} MiB against ${SMALL / MIB} MiB`,
      result: `× ${ratio.toFixed(2)}`,
      bar: { limit: `≤ × ${BAR}`, met: ratio <= BAR },
    },
  ];
}

/** Returns the peak memory in bytes once the daemon serves, and once the image is uploaded. */
async function measure(
  context: BenchmarkContext,
  bytes: number,
): Promise<{ readonly started: number; readonly peak: number }> {
  const { signal, progress } = context;
  const server = await startGearmand();
  const client = new Client({ servers: [{ host: '127.0.0.1', port: server.port }] });
  context.after(() => server.stop());
  context.after(() => client.close());
  const site = await createSite(
    server.port,
    `
  - name: docs
    builder: filler
    options: {bytes: ${bytes}}`,
  );
  context.after(() => site.remove());
  const daemon = spawnCompiled(site.config, BUILDER);
  context.after(() => stop(daemon));
  await unlessAborted(daemon.logged(/nodepool\.builder: serving /), signal);
  const peak = (): Promise<number> => peakMemory(daemon.child.pid);
  const started = await peak();
  progress(`building ${bytes / MIB} MiB`);
  await unlessAborted(client.submit('image-build:docs', '{"image-id": "0001"}'), signal);
  progress(`${megabytes(await peak())}; converting and uploading it`);
  const upload = client.submit('image-upload:0001', '{"provider": "pool", "image-name": "docs"}');
  const { 'external-id': uploaded } = JSON.parse(String(await unlessAborted(upload, signal)));
  const { blocks } = await stat(join(site.pool, uploaded));
  if (blocks * 512 < bytes) throw new Error(`${uploaded} holds less than the ${bytes} bytes that were built`);
  progress(megabytes(await peak()));
  return { started, peak: await peak() };
}
