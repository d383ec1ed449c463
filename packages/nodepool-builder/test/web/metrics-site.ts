import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { docsImage, provider } from '../../../../test/fixtures/managed-site.ts';
import { waitUntil } from '../../../../test/fixtures/wait-until.ts';
import { startWebSite, type WebSite } from '../../../../test/fixtures/web-site.ts';

/** A disk image of a program that writes a raw disk. */
export function commandImage(name: string, script: string) {
  return { name, builder: 'command', formats: ['raw'], command: ['sh', '-c', script] };
}

export const MANAGER = { store: 'state/manager.sqlite', 'retry-delay': 1, 'max-retry-delay': 2 };

/** A site with a disk image that is uploaded to two providers, one whose builds fail, and one that takes long. */
export async function startSite(t: TestContext): Promise<WebSite> {
  const settings = {
    manager: MANAGER,
    diskimages: [docsImage(), commandImage('broken', 'exit 1'), commandImage('slow', 'sleep 600')],
    providers: [provider('east'), provider('west')],
  };
  return await startWebSite(t, settings, '--build-workers', '3');
}

export async function scrape({ url }: Pick<WebSite, 'url'>): Promise<string> {
  const response = await fetch(`${url}/metrics`);
  assert.equal(response.status, 200);
  assert.match(response.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
  return await response.text();
}

/** Returns the value of one of our series; undefined if it does not exist. */
export function sampleOf(text: string, series: string): number | undefined {
  const line = text.split('\n').find((one) => one.startsWith(`nodepool_builder_${series} `));
  return line === undefined ? undefined : Number(line.split(' ').at(-1));
}

/** Waits until a series has at least this value. Returns all metrics. */
export async function until(site: Pick<WebSite, 'url'>, series: string, least: number): Promise<string> {
  return await waitUntil(`${series} to be ${least}`, async () => {
    const text = await scrape(site);
    return (sampleOf(text, series) ?? -1) >= least && text;
  });
}

/** Waits until both uploads are counted, and the failed build was retried. */
export async function untilCounted(site: WebSite): Promise<string> {
  for (const name of ['east', 'west']) {
    const labels = `diskimage="docs",provider="${name}"`;
    await until(site, `upload_results_total{${labels},result="success"}`, 1);
    await until(site, `uploads{${labels},state="ready"}`, 1); // the state of the site is up to two seconds old
  }
  return await until(site, 'build_retries_total{diskimage="broken"}', 1);
}
