import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { EventMetrics } from '../../../packages/nodepool-builder/src/web/event-metrics.ts';
import { type Measurement, unlessAborted } from '../benchmark.ts';

const SCRAPES = 5;

/** Milliseconds between two scrapes, so that each reads the site's state again. */
const PAUSE = 2500;

/** Maximum duration in milliseconds. Prometheus times out after ten seconds by default. */
const BAR = 1000;

/** A running daemon with the records of many images. */
interface Target {
  readonly url: string;
  readonly pid: number;
  readonly signal: AbortSignal;
}

/** Measures scrapes of a daemon: duration, size, and the memory that stays in use. */
export async function measureScrapes({ url, pid, signal }: Target): Promise<Measurement[]> {
  const times: number[] = [];
  let bytes = 0;
  let before = 0;
  for (let scrape = 0; scrape <= SCRAPES; scrape += 1) {
    const started = performance.now();
    const response = await unlessAborted(fetch(`${url}/metrics`), signal);
    bytes = (await response.arrayBuffer()).byteLength;
    // The first scrape also waits for the start of the manager.
    if (scrape === 0) before = await residentBytes(pid);
    else times.push(performance.now() - started);
    await delay(PAUSE, undefined, { signal });
  }
  const grown = (await residentBytes(pid)) - before;
  const slowest = Math.max(...times);
  return [
    {
      what: `Scrape of /metrics, ${(bytes / 2 ** 20).toFixed(1)} MiB, the slowest of ${SCRAPES}`,
      result: `${slowest.toFixed(0)} ms`,
      bar: { limit: `< ${BAR} ms`, met: slowest < BAR },
    },
    {
      what: 'Memory growth during these scrapes',
      result: `${(grown / 2 ** 20).toFixed(0)} MiB`,
    },
  ];
}

async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}

/** Measures the metrics of events after each image was built and uploaded to each provider by this process. */
export async function measureEvents(
  diskimages: readonly string[],
  providers: readonly string[],
): Promise<Measurement[]> {
  const configuration = { diskimages: named(diskimages), providers: named(providers) };
  const metrics = new EventMetrics(configuration, { runsManager: true });
  const before = process.memoryUsage().heapUsed;
  for (const diskimage of diskimages) {
    metrics.onJobEvent({ kind: 'build-started', diskimage });
    metrics.onJobEvent({ kind: 'build-ended', diskimage, result: 'success', seconds: 600 });
    for (const provider of providers) {
      const upload = { diskimage, provider, imageName: diskimage };
      metrics.onJobEvent({ kind: 'upload-started', ...upload });
      metrics.onJobEvent({ kind: 'upload-ended', ...upload, result: 'success', seconds: 60, size: 1e9 });
    }
  }
  const heap = process.memoryUsage().heapUsed - before;
  const times: number[] = [];
  let text = '';
  for (let scrape = 0; scrape < SCRAPES; scrape += 1) {
    const started = performance.now();
    text = await metrics.registry.metrics();
    times.push(performance.now() - started);
  }
  const series = text.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length;
  return [
    {
      what: `Scrape of the event metrics alone, ${series} series, ${(text.length / 2 ** 20).toFixed(1)} MiB, the slowest of ${SCRAPES}`,
      result: `${Math.max(...times).toFixed(0)} ms`,
    },
    { what: 'Memory of these series', result: `${(heap / 2 ** 20).toFixed(0)} MiB` },
  ];
}

function named(names: readonly string[]) {
  return names.map((name) => ({ name }));
}
