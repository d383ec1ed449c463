import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Admin } from '@nodepool-builder/gearman-node';
import { startGearmand } from '../fixtures/gearmand.ts';
import { createSite } from '../fixtures/site.ts';
import type { Benchmark, BenchmarkContext, Measurement } from './benchmark.ts';
import { spawnCompiled, stop, UNBUILT } from './daemon.ts';
import { distributionOf } from './distribution.ts';
import { makeImages } from './many-images.ts';
import { functionsOf, untilOffered } from './offered.ts';

/** Number of images that appear and disappear in each directory. */
const SAMPLES = 100;

/** Maximum time in milliseconds until gearmand lists the functions. */
const BAR = 100;

/** Measures the time until gearmand lists, or drops, the functions of an image moved into, or out of, images-dir. */
export const appearance: Benchmark = {
  name: 'appearance',
  run: async (context) => [...(await measure(context, 0)), ...(await measure(context, 2_000))],
};

async function measure(context: BenchmarkContext, others: number): Promise<Measurement[]> {
  const { signal, progress } = context;
  progress(`${SAMPLES} images come and go among ${others} others`);
  const server = await startGearmand();
  context.after(() => server.stop());
  const site = await createSite(server.port, UNBUILT);
  context.after(() => site.remove());
  const present = others === 0 ? [] : await makeImages(site.images, others, signal);
  const admin = new Admin({ host: '127.0.0.1', port: server.port });
  context.after(() => admin.close());
  const daemon = spawnCompiled(site.config);
  context.after(() => stop(daemon));
  const before = ['image-build:docs', ...present.flatMap(functionsOf)];
  await untilOffered(admin, (offered) => before.every((name) => offered.has(name)), signal);

  const times = { appears: [] as number[], disappears: [] as number[] };
  for (let sample = 0; sample < SAMPLES; sample += 1) {
    const imageId = `appearing-${sample}`;
    const functions = functionsOf(imageId);
    const file = join(site.images, `${imageId}.raw`);
    const elsewhere = join(site.directory, imageId);
    await writeFile(elsewhere, imageId);
    const moved = performance.now();
    await rename(elsewhere, file);
    await untilOffered(admin, (offered) => functions.every((name) => offered.has(name)), signal);
    times.appears.push(performance.now() - moved);
    const removed = performance.now();
    await rm(file);
    await untilOffered(admin, (offered) => !functions.some((name) => offered.has(name)), signal);
    times.disappears.push(performance.now() - removed);
  }
  const among = others === 0 ? 'an otherwise empty images-dir' : `images-dir with ${others} images`;
  return [
    measured(`Image moved into ${among} until its functions are offered`, times.appears),
    measured(`Image removed from ${among} until its functions are gone`, times.disappears),
  ];
}

function measured(what: string, samples: readonly number[]): Measurement {
  const { count, median, p95, max } = distributionOf(samples);
  const [middle, most, all] = [median, p95, max].map((time) => `${time.toFixed(0)} ms`);
  const result = `median ${middle}, p95 ${most}, max ${all} of ${count}`;
  return { what, result, bar: { limit: `max ≤ ${BAR} ms`, met: max <= BAR } };
}
