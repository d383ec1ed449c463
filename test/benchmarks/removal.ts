import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Admin } from '@nodepool-builder/gearman-node';
import { RawPeer } from '../../packages/gearman-node/test/fixtures/raw-peer.ts';
import type { BuilderProcess } from '../fixtures/builder-process.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { createSite } from '../fixtures/site.ts';
import { type Benchmark, type BenchmarkContext, type Measurement, unlessAborted } from './benchmark.ts';
import { formatNumber } from './comparison.ts';
import { spawnCompiled, stop, UNBUILT } from './daemon.ts';
import { makeImages } from './many-images.ts';
import { megabytes, peakMemory } from './peak-memory.ts';
import { processorTime } from './processor-time.ts';

/** Numbers of images in images-dir. */
const COUNTS = [20_000, 100_000] as const;

/** Limits: seconds of a start with the most images, bytes of memory, milliseconds of a stall. */
const START_BAR = 15;
const MEMORY_BAR = 300e6;
const STALL_BAR = 50;

/** Maximum time in milliseconds in which a job server with very many functions lists them. */
const LIST_LIMIT = 120_000;

const BUILDER = join(import.meta.dirname, 'watched-builder.ts');

/** Starts a daemon with very many images, removes a tenth of them by hand, and adds as many. */
export const removal: Benchmark = {
  name: 'removal',
  run: async (context) => {
    const rows: Measurement[] = [];
    for (const count of COUNTS) rows.push(...(await measure(context, count)));
    return rows;
  },
};

async function measure(context: BenchmarkContext, count: number): Promise<Measurement[]> {
  const { signal, progress } = context;
  progress(`making ${count} images`);
  const server = await startGearmand('--threads=1');
  context.after(() => server.stop());
  const site = await createSite(server.port, UNBUILT);
  context.after(() => site.remove());
  const imageIds = await makeImages(site.images, count, signal);
  const admin = new Admin({ host: '127.0.0.1', port: server.port }, { timeout: LIST_LIMIT });
  context.after(() => admin.close());
  const daemon = spawnCompiled(site.config, BUILDER);
  context.after(() => stop(daemon));
  const file = (imageId: string): string => join(site.images, `${imageId}.raw`);
  const changed = imageIds.slice(0, count / 10);

  /** Runs a step, and waits until gearmand lists the functions of this number of images. */
  const phase = async (
    what: string,
    images: number,
    change: (imageId: string) => Promise<void>,
    bar?: number,
  ): Promise<Measurement[]> => {
    progress(what);
    const peer = await RawPeer.connect(server.port);
    context.after(() => peer.close());
    const probe = new EchoProbe(peer);
    const lines = daemon.log.length;
    const processor = await processorTime(daemon.child.pid);
    const begin = performance.now();
    for (const imageId of changed) await change(imageId);
    while ((await uploadsOffered(admin, signal)) !== images) await delay(100, undefined, { signal });
    const seconds = (performance.now() - begin) / 1000;
    const { own } = await processorTime(daemon.child.pid);
    const stall = longestStall(daemon, lines);
    const times = `${formatNumber(seconds, 1)} s; ${formatNumber(own - processor.own, 1)} s of processor time`;
    return [
      { what, result: times, ...(bar && { bar: { limit: `≤ ${bar} s`, met: seconds <= bar } }) },
      {
        what: `${what}: longest stall of the event loop`,
        result: `${formatNumber(stall, 0)} ms of processor time`,
        bar: { limit: `≤ ${STALL_BAR} ms`, met: stall <= STALL_BAR },
      },
      {
        what: `${what}: longest ECHO of another client of gearmand`,
        result: `${formatNumber(await probe.end(), 0)} ms`,
      },
    ];
  };
  const named = `${formatNumber(count, 0)} images`;
  const rows = await phase(`Start with ${named}`, count, async () => {}, START_BAR);
  const peak = await peakMemory(daemon.child.pid);
  rows.push({
    what: `Start with ${named}: peak memory`,
    result: megabytes(peak),
    bar: { limit: `≤ ${megabytes(MEMORY_BAR)}`, met: peak <= MEMORY_BAR },
  });
  const rest = count - changed.length;
  rows.push(
    ...(await phase(`A tenth of ${named} removed by hand`, rest, (imageId) => rm(file(imageId)))),
    ...(await phase(`As many added to ${formatNumber(rest, 0)}`, count, (imageId) =>
      writeFile(file(imageId), imageId),
    )),
  );
  await stop(daemon);
  return rows;
}

async function uploadsOffered(admin: Admin, signal: AbortSignal): Promise<number> {
  const offers = admin.status(
    ({ name, availableWorkers }) => availableWorkers > 0 && name.startsWith('image-upload:'),
  );
  return (await unlessAborted(offers, signal)).length;
}

/** Reads the milliseconds of processor time of the maximum stall from the log, starting at a line. */
function longestStall({ log }: BuilderProcess, from: number): number {
  return Math.max(0, ...log.slice(from).map((line) => Number(/^stall (\S+)/.exec(line)?.[1] ?? 0)));
}

/** Probe that sends ECHO_REQ to gearmand repeatedly, until it is ended or the connection is closed. */
class EchoProbe {
  readonly #peer: RawPeer;
  readonly #ended: Promise<void>;
  #max = 0;
  #isEnding = false;

  constructor(peer: RawPeer) {
    this.#peer = peer;
    this.#ended = this.#run();
    this.#ended.catch(() => {}); // `end` throws it
  }

  /** Returns the maximum response time in milliseconds. */
  async end(): Promise<number> {
    this.#isEnding = true;
    await this.#ended;
    return this.#max;
  }

  async #run(): Promise<void> {
    while (!this.#isEnding) {
      const begin = performance.now();
      this.#peer.send('ECHO_REQ', '');
      await this.#peer.next();
      this.#max = Math.max(this.#max, performance.now() - begin);
      await delay(10);
    }
  }
}
