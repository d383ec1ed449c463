import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Build, Upload } from '@nodepool-builder/image-manager';
import { openStateStore } from '@nodepool-builder/image-manager';
import type { Page } from 'puppeteer-core';
import { freePort } from '../../../scripts/free-port.ts';
import { launchBrowser } from '../../fixtures/browser.ts';
import { spawnDaemon } from '../../fixtures/builder-process.ts';
import { type Benchmark, type BenchmarkContext, type Measurement, unlessAborted } from '../benchmark.ts';
import { NODEPOOL_BUILDER } from '../daemon.ts';
import { measureEvents, measureScrapes } from './metrics.ts';

const DISKIMAGES = 1000;
const BUILDS_OF_EACH = 2;
const PROVIDERS = ['east', 'north', 'west'];

/** Number of page loads, and of requests that change the page. */
const RUNS = 5;

/** Maximum duration in milliseconds. */
const PAINT_BAR = 1000;
const UPDATE_BAR = 250;

const NAMES = Array.from({ length: DISKIMAGES }, (_, index) => `image-${index}`);

/** Measures the status page of a site with a thousand disk images in Chromium. */
export const statusPage: Benchmark = { name: 'status-page', run };

async function run(context: BenchmarkContext): Promise<Measurement[]> {
  const { signal, after, progress } = context;
  const directory = await mkdtemp(join(tmpdir(), 'bench-web-'));
  after(() => rm(directory, { recursive: true, force: true }));
  progress(`writing the records of ${DISKIMAGES} disk images`);
  const port = await freePort();
  const config = await writeSite(directory, { port, pause: true });
  const store = await openStateStore(join(directory, 'state.sqlite'));
  after(() => store.close());
  const leadership = await store.lead();
  await leadership.write(recordsOf(store.owner));
  await leadership.release();

  const command: [string, string[]] = [
    process.execPath,
    [NODEPOOL_BUILDER, '-d', '-c', config, '--all-in-one', '--web=0'],
  ];
  const daemon = spawnDaemon(command);
  after(() => daemon.end('SIGTERM'));
  const url = /http\S+/.exec(await unlessAborted(daemon.logged(/status page at http/), signal))?.[0] ?? '';
  progress('scrapes of the metrics');
  const scrapes = await measureScrapes({ url, pid: daemon.child.pid ?? 0, signal });
  const { browser, close } = await launchBrowser();
  after(close);
  const page = await browser.newPage();
  await page.setViewport({ width: 1200, height: 900 });
  const paints: number[] = [];
  for (let load = 0; load < RUNS; load += 1) {
    progress(`page ${load + 1} of ${RUNS}`);
    await unlessAborted(page.goto(url), signal);
    await unlessAborted(
      page.waitForFunction("performance.getEntriesByName('first-contentful-paint').length"),
      signal,
    );
    paints.push(
      Number(await page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")),
    );
  }
  for (let update = 0; update < RUNS; update += 1) {
    progress(`update ${update + 1} of ${RUNS}`);
    const seen = Number(await page.evaluate("performance.getEntriesByName('update').length"));
    await store.ask({ kind: 'build', diskimage: NAMES[update * 100] ?? '' });
    await unlessAborted(
      page.waitForFunction(`performance.getEntriesByName('update').length > ${seen}`),
      signal,
    );
  }
  const updates = await updatesOf(page);
  progress('an update of all images');
  await writeSite(directory, { port, pause: false });
  const all = `performance.getEntriesByName('update').length > ${updates.length} && document.body.innerText`;
  await unlessAborted(page.waitForFunction(`${all}.match(/paused/g) === null`), signal);
  await unlessAborted(page.waitForFunction(`${countOf('whole-update')} === ${countOf('update')}`), signal);
  const shown = Math.max(...(await updatesOf(page)).slice(updates.length));
  const whole = Math.max(...(await updatesOf(page, 'whole-update')).slice(updates.length));
  const [paint, update] = [Math.max(...paints), Math.max(...updates)];
  const builds = DISKIMAGES * BUILDS_OF_EACH;
  return [
    {
      what: `First paint of the page, ${builds} builds and ${builds * PROVIDERS.length} uploads, the slowest of ${RUNS}`,
      result: `${paint.toFixed(0)} ms`,
      bar: { limit: `< ${PAINT_BAR} ms`, met: paint < PAINT_BAR },
    },
    {
      what: `Update of one image, the slowest of ${updates.length}`,
      result: `${update.toFixed(0)} ms`,
      bar: { limit: `< ${UPDATE_BAR} ms`, met: update < UPDATE_BAR },
    },
    {
      what: `Update of all ${DISKIMAGES} images at once, until the visible ones are shown`,
      result: `${shown.toFixed(0)} ms`,
      bar: { limit: `< ${UPDATE_BAR} ms`, met: shown < UPDATE_BAR },
    },
    {
      what: `Update of all ${DISKIMAGES} images at once, until all are shown`,
      result: `${whole.toFixed(0)} ms`,
    },
    ...scrapes,
    ...(await measureEvents(NAMES, PROVIDERS)),
  ];
}

/** Expression for the number of performance measures. */
function countOf(name: string): string {
  return `performance.getEntriesByName('${name}').length`;
}

/** Returns the durations of all updates so far, in milliseconds. */
async function updatesOf(page: Page, name = 'update'): Promise<readonly number[]> {
  const durations = `performance.getEntriesByName('${name}').map(({ duration }) => duration)`;
  return (await page.evaluate(durations)) as number[];
}

/** Writes the configuration. Everything is paused, so that only requests are served. */
async function writeSite(
  directory: string,
  { port, pause }: { readonly port: number; readonly pause: boolean },
): Promise<string> {
  await Promise.all(
    ['images', ...PROVIDERS].map((name) => mkdir(join(directory, name), { recursive: true })),
  );
  const images = NAMES.map((name) => ({ name, diskimage: name }));
  const config = join(directory, 'nodepool.yaml');
  const settings = {
    'images-dir': 'images',
    'gearman-servers': [{ host: '127.0.0.1', port }],
    manager: { store: 'state.sqlite' },
    diskimages: NAMES.map((name) => ({
      name,
      builder: 'command',
      command: ['true', '{output.raw}'],
      pause,
    })),
    providers: PROVIDERS.map((name) => {
      return { name, type: 'directory', directory: name, 'image-type': 'raw', pause: true, images };
    }),
  };
  await writeFile(config, JSON.stringify(settings));
  return config;
}

function recordsOf(owner: string): {
  readonly builds: readonly Build[];
  readonly uploads: readonly Upload[];
} {
  const builds: Build[] = [];
  const uploads: Upload[] = [];
  const now = Date.now();
  const newId = (): string => `${String(builds.length + uploads.length + 1).padStart(10, '0')}-${owner}`;
  for (const diskimage of NAMES) {
    for (let generation = BUILDS_OF_EACH; generation > 0; generation -= 1) {
      const requestedAt = now - generation * 3_600_000;
      const times = { requestedAt, endedAt: requestedAt + 60_000 };
      const imageId = `${diskimage}-${newId()}`;
      const common = { diskimage, state: 'ready', ...times } as const;
      builds.push({
        ...common,
        id: imageId,
        configuration: '0'.repeat(64),
        reason: 'its first ready build',
        withdrawn: false,
      });
      for (const provider of PROVIDERS) {
        const id = newId();
        const place = { provider, imageName: diskimage, externalId: id };
        const reason = 'the first image there';
        uploads.push({ ...common, ...place, id, imageId, reason, leftovers: false, seen: true });
      }
    }
  }
  return { builds, uploads };
}
