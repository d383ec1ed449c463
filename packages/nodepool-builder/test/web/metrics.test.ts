// Not a unit test: it starts a builder.
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { readPage } from '../../../../test/docs/markdown.ts';
import { type BuilderProcess, startBuilder } from '../../../../test/fixtures/builder-process.ts';
import { runCommand } from '../../../../test/fixtures/command-outcome.ts';
import {
  createManagedSite,
  endAfter,
  provider,
  spawnManager,
} from '../../../../test/fixtures/managed-site.ts';
import { waitUntil } from '../../../../test/fixtures/wait-until.ts';
import { startWebSite } from '../../../../test/fixtures/web-site.ts';
import { MANAGER, sampleOf, scrape, startSite, until, untilCounted } from './metrics-site.ts';

/** A label and its value: `east` of provider. */
const EAST = 'diskimage="docs",provider="east"';

test('the page /metrics shows the site’s state and its processes’ counts', async (t) => {
  const site = await startSite(t);
  const text = await untilCounted(site);
  const expected: Readonly<Record<string, number>> = {
    'builds{diskimage="docs",state="ready"}': 1,
    builders: 1,
    problems: 0,
    manager_leader: 1,
    'build_workers{diskimage="docs"}': 1,
    [`image_missing{${EAST},image_name="docs"}`]: 0,
    [`queued_jobs{server="127.0.0.1:${site.port}",function="image-build:docs"}`]: 0,
    [`queued_jobs{server="127.0.0.1:${site.port}",function="other"}`]: 0,
    [`job_server_up{server="127.0.0.1:${site.port}"}`]: 1,
    'build_jobs_total{diskimage="docs",result="success"}': 1,
    'build_jobs_total{diskimage="docs",result="failure"}': 0,
    'build_duration_seconds_count{diskimage="docs"}': 1,
    'build_duration_seconds_bucket{le="60",diskimage="docs"}': 1,
    'build_results_total{diskimage="docs",result="success"}': 1,
    'build_results_total{diskimage="slow",result="success"}': 0,
    [`upload_jobs_total{${EAST},result="success"}`]: 1,
    [`upload_results_total{${EAST},result="failure"}`]: 0,
    [`upload_retries_total{${EAST}}`]: 0,
    'upload_duration_seconds_count{provider="east"}': 1,
    'conversion_duration_seconds_count{format="qcow2"}': 1,
    'orphaned_uploads{provider="west"}': 0,
  };
  for (const [series, value] of Object.entries(expected)) assert.equal(sampleOf(text, series), value, series);
  assert.ok((sampleOf(text, `running_jobs{host="${hostname()}",kind="build"}`) ?? 0) >= 1);
  const size = sampleOf(text, 'image_size_bytes{diskimage="docs",format="qcow2"}') ?? 0;
  assert.ok(size > 0);
  assert.equal(sampleOf(text, `last_upload_size_bytes{${EAST}}`), size);
  assert.equal(sampleOf(text, 'upload_bytes_total{provider="east"}'), size);
  const failures = sampleOf(text, 'build_results_total{diskimage="broken",result="failure"}') ?? 0;
  assert.ok(failures >= 1);
  const built = sampleOf(text, 'newest_build_timestamp_seconds{diskimage="docs"}') ?? 0;
  assert.ok(Math.abs(Date.now() / 1000 - built) < 300);
  for (const series of [
    'last_build_duration_seconds{diskimage="docs"}',
    `last_upload_duration_seconds{${EAST},image_name="docs"}`,
  ]) {
    assert.ok((sampleOf(text, series) ?? -1) > 0, series);
  }
  assert.match(text, /^nodepool_builder_disk_free_bytes\{host="[^"]+",images_dir="[^"]+"\} \d/m);
  assert.match(text, /^nodepool_builder_builder_info\{host="[^"]+",version="[^"]+"\} 1$/m);
  assert.match(text, /^process_resident_memory_bytes \d/m);

  await t.test('a cancelled build is counted as cancelled by the builder and by the manager', async () => {
    const builds = await site.list('dib-image-list');
    const slow = builds.find((build) => String(build['image-id']).startsWith('slow-')) ?? assert.fail();
    assert.equal((await runCommand('cancel', String(slow['image-id']), '-c', site.config)).code, 0);
    const after = await until(site, 'build_results_total{diskimage="slow",result="cancelled"}', 1);
    assert.equal(sampleOf(after, 'build_jobs_total{diskimage="slow",result="cancelled"}'), 1);
    assert.equal(sampleOf(after, 'build_jobs_total{diskimage="slow",result="failure"}'), 0);
  });

  await t.test('the documents name each metric with its type and labels', async () => {
    await assertDocumented(await scrape(site));
  });

  await t.test('a reload keeps the metrics’ counts, and metrics of what was removed disappear', async () => {
    await site.configure({ manager: MANAGER, providers: [provider('east')] });
    const after = await waitUntil('the series to go away', async () => {
      const now = await scrape(site);
      return !/_total\{.*"broken"/.test(now) && now;
    });
    assert.doesNotMatch(
      after,
      /^nodepool_builder_\w+_(?:total|bucket|sum|count|bytes)\{.*"(?:broken|west|slow)"/m,
    );
    assert.equal(sampleOf(after, `upload_results_total{${EAST},result="success"}`), 1);
    assert.equal(sampleOf(after, 'upload_duration_seconds_count{provider="east"}'), 1);
  });
});

/** Compares the tables of docs/metrics.md with the metrics of this project. */
async function assertDocumented(text: string): Promise<void> {
  const page = await readPage('docs/metrics.md');
  const rows = [...page.matchAll(/^\| `(\w+)` \| (\w+) \|(.*?)\| \S.*\. \|$/gm)];
  const documented = new Map(
    rows.map(([, name, type, labels = '']) => [
      `nodepool_builder_${name} ${type}`,
      [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label),
    ]),
  );
  const types = [...text.matchAll(/^# TYPE (nodepool_builder_\w+) (\w+)$/gm)];
  assert.deepEqual(
    types.map(([, name, type]) => `${name} ${type}`).toSorted(),
    [...documented.keys()].toSorted(),
  );
  for (const [, name = '', labels = ''] of text.matchAll(/^(nodepool_builder_\w+?)(?:\{(.*)\})? \S+$/gm)) {
    const metric = types.find(([, one = '']) => RegExp(`^${one}(?:_bucket|_sum|_count)?$`).test(name));
    const own = [...labels.matchAll(/(\w+)="/g)].map(([, label]) => label).filter((label) => label !== 'le');
    assert.deepEqual(own, documented.get(`${metric?.[1]} ${metric?.[2]}`), name);
  }
}

async function pageOf(service: BuilderProcess): Promise<{ readonly url: string }> {
  const line = await service.logged(/status page at http/);
  return { url: /http\S+/.exec(line)?.[0] ?? assert.fail(line) };
}

test('the manager of a fleet counts results, and the builder counts its jobs', async (t) => {
  const managed = await createManagedSite(t);
  const config = join(managed.directory, 'builder.yaml');
  const settings = JSON.parse(await readFile(managed.config, 'utf8')) as object;
  await writeFile(config, JSON.stringify({ ...settings, manager: { store: 'of-another-host.sqlite' } }));
  const builder = endAfter(t, await startBuilder(config, '--embedded-gearmand', '--web', '0'));
  const manager = spawnManager(t, managed.config, '--web', '0');
  const [ofManager, ofBuilder] = [await pageOf(manager), await pageOf(builder)];
  for (const name of ['east', 'west']) {
    const labels = `diskimage="docs",provider="${name}",result="success"`;
    await until(ofManager, `upload_results_total{${labels}}`, 1);
    await until(ofBuilder, `upload_jobs_total{${labels}}`, 1);
  }
  const place = 'diskimage="docs",provider="west",image_name="docs"';
  const counted = await until(ofManager, `last_upload_duration_seconds{${place}}`, 0);
  assert.equal(sampleOf(counted, `image_missing{${place}}`), 0);
  assert.equal(sampleOf(counted, 'manager_leader'), 1);
  assert.doesNotMatch(
    counted,
    /^nodepool_builder_(?:\w+_jobs_total|\w+_duration_seconds_\w+|image_size_bytes)\{/m,
  );
  const here = await scrape(ofBuilder);
  assert.doesNotMatch(here, /^nodepool_builder_image_missing\{/m); // the builder does not know the manager's records
  assert.equal(sampleOf(here, 'build_duration_seconds_count{diskimage="docs"}'), 1);
  assert.doesNotMatch(here, /^nodepool_builder_(?:manager_leader|\w+_results_total)\b.* \d/m);
  for (const text of [counted, here]) assert.equal(sampleOf(text, 'builders'), 1);
});

test('the page /livez responds with OK while the process lives', async (t) => {
  const site = await startWebSite(t);
  const response = await fetch(`${site.url}/livez`);
  assert.deepEqual([response.status, await response.text()], [200, 'OK']);
});
