// Not a unit test: it starts promtool, Prometheus and a builder.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { freePort } from '../../../../scripts/free-port.ts';
import { readPage } from '../../../../test/docs/markdown.ts';
import { type BuilderProcess, startBuilder } from '../../../../test/fixtures/builder-process.ts';
import { runCommand } from '../../../../test/fixtures/command-outcome.ts';
import {
  createManagedSite,
  docsImage,
  endAfter,
  provider,
  spawnManager,
} from '../../../../test/fixtures/managed-site.ts';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import { waitUntil } from '../../../../test/fixtures/wait-until.ts';
import { startWebSite, type WebSite } from '../../../../test/fixtures/web-site.ts';

const EXAMPLE = join(import.meta.dirname, '../../../../examples/monitoring');

/** A disk image of a program that writes a raw disk. */
function commandImage(name: string, script: string) {
  return { name, builder: 'command', formats: ['raw'], command: ['sh', '-c', script] };
}

const MANAGER = { store: 'state/manager.sqlite', 'retry-delay': 1, 'max-retry-delay': 2 };

/** A site with a disk image that is uploaded to two providers, one whose builds fail, and one that takes long. */
async function startSite(t: TestContext): Promise<WebSite> {
  const settings = {
    manager: MANAGER,
    diskimages: [docsImage(), commandImage('broken', 'exit 1'), commandImage('slow', 'sleep 600')],
    providers: [provider('east'), provider('west')],
  };
  return await startWebSite(t, settings, '--build-workers', '3');
}

async function scrape({ url }: Pick<WebSite, 'url'>): Promise<string> {
  const response = await fetch(`${url}/metrics`);
  assert.equal(response.status, 200);
  assert.match(response.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
  return await response.text();
}

/** Value of a series of this project; undefined if it does not exist. */
function sampleOf(text: string, series: string): number | undefined {
  const line = text.split('\n').find((one) => one.startsWith(`nodepool_builder_${series} `));
  return line === undefined ? undefined : Number(line.split(' ').at(-1));
}

/** Waits until a series has at least this value. Returns all metrics. */
async function until(site: Pick<WebSite, 'url'>, series: string, least: number): Promise<string> {
  return await waitUntil(`${series} to be ${least}`, async () => {
    const text = await scrape(site);
    return (sampleOf(text, series) ?? -1) >= least && text;
  });
}

/** Waits until both uploads are counted, and the failing build was retried. */
async function untilCounted(site: WebSite): Promise<string> {
  for (const name of ['east', 'west']) {
    const labels = `diskimage="docs",provider="${name}"`;
    await until(site, `upload_results_total{${labels},result="success"}`, 1);
    await until(site, `uploads{${labels},state="ready"}`, 1); // the state of the site is up to two seconds old
  }
  return await until(site, 'build_retries_total{diskimage="broken"}', 1);
}

/** A label and its value: `east` of provider. */
const EAST = 'diskimage="docs",provider="east"';

test('the page /metrics shows the site’s state and its processes’ counts, and promtool accepts it', async (t) => {
  const site = await startSite(t);
  const text = await untilCounted(site);
  execFileSync('promtool', ['check', 'metrics'], { input: text, stdio: ['pipe', 'ignore', 'inherit'] });
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
  assert.doesNotMatch(here, /^nodepool_builder_image_missing\{/m); // it does not know the records of the manager
  assert.equal(sampleOf(here, 'build_duration_seconds_count{diskimage="docs"}'), 1);
  assert.doesNotMatch(here, /^nodepool_builder_(?:manager_leader|\w+_results_total)\b.* \d/m);
  for (const text of [counted, here]) assert.equal(sampleOf(text, 'builders'), 1);
});

test('the page /livez responds with OK while the process lives', async (t) => {
  const site = await startWebSite(t);
  const response = await fetch(`${site.url}/livez`);
  assert.deepEqual([response.status, await response.text()], [200, 'OK']);
});

test('promtool accepts the configuration, alert rules and tests in examples/monitoring', async () => {
  const promtool = (...args: readonly string[]): unknown => execFileSync('promtool', args, { cwd: EXAMPLE });
  promtool('check', 'config', 'prometheus.yml');
  promtool('check', 'rules', 'rules.yml');
  promtool('test', 'rules', 'rules.test.yml');
  const alerts = [...(await readFile(join(EXAMPLE, 'rules.yml'), 'utf8')).matchAll(/- alert: (\w+)$/gm)];
  const names = alerts.map(([, name]) => name);
  const tested = await readFile(join(EXAMPLE, 'rules.test.yml'), 'utf8');
  for (const name of names) assert.match(tested, RegExp(`alertname: ${name}\\n +exp_alerts:\\n`), name);
  const documented = [...(await readPage('examples/monitoring/README.md')).matchAll(/^\| `(\w+)` \| /gm)];
  assert.deepEqual(
    documented.map(([, name]) => name),
    names,
  );
});

/** Starts Prometheus with the example's configuration; it scrapes a site each second. */
async function startPrometheus(t: TestContext, site: WebSite): Promise<string> {
  const directory = temporaryDirectory(t);
  const example = await readFile(join(EXAMPLE, 'prometheus.yml'), 'utf8');
  const config = join(directory, 'prometheus.yml');
  const { host } = new URL(site.url);
  await writeFile(
    config,
    example.replace('127.0.0.1:8080', host).replaceAll('interval: 30s', 'interval: 1s'),
  );
  await copyFile(join(EXAMPLE, 'rules.yml'), join(directory, 'rules.yml'));
  const address = `127.0.0.1:${await freePort()}`;
  const prometheus = spawn(
    'prometheus',
    [
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(directory, 'data')}`,
      `--web.listen-address=${address}`,
      '--log.level=error',
    ],
    { stdio: ['ignore', 'inherit', 'inherit'] },
  );
  const ended = once(prometheus, 'exit');
  undoAfter(t, async () => {
    prometheus.kill();
    await ended;
  });
  return `http://${address}/api/v1`;
}

interface DashboardPanel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly h: number; readonly w: number; readonly x: number; readonly y: number };
  readonly datasource?: { readonly uid: string };
  readonly targets?: readonly { readonly expr: string; readonly datasource: { readonly uid: string } }[];
}

interface Dashboard {
  readonly panels: readonly DashboardPanel[];
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly type: string; readonly definition?: string }[];
  };
}

/** Queries without a result in the site of the test: nothing has failed that way, and a directory has no requests. */
const WITHOUT_RESULT = /step_retries|orphan|provider_request/;

test('Prometheus evaluates each dashboard query and rule in examples/monitoring on real metrics', async (t) => {
  const dashboard = JSON.parse(await readFile(join(EXAMPLE, 'dashboard.json'), 'utf8')) as Dashboard;
  const site = await startSite(t);
  const text = await untilCounted(site);
  const api = await startPrometheus(t, site);
  const query = async (expression: string): Promise<readonly unknown[]> => {
    const response = await fetch(`${api}/query?query=${encodeURIComponent(expression)}`);
    const { status, error, data } = (await response.json()) as {
      readonly status: string;
      readonly error?: string;
      readonly data?: { readonly result: readonly unknown[] };
    };
    assert.equal(status, 'success', `${expression}: ${error}`);
    return data?.result ?? [];
  };
  // A scrape that takes too long leaves the series without values until the next one.
  const untilResult = async (title: string, expression: string): Promise<void> => {
    await waitUntil(`${title}: a result of ${expression}`, async () => (await query(expression)).length > 0);
  };
  await waitUntil('three successful scrapes', async () => {
    const [count] = (await query('sum_over_time(up[1h])').catch(() => [])) as readonly {
      readonly value: readonly [number, string];
    }[];
    return Number(count?.value[1]) >= 3;
  });
  const variables: Readonly<Record<string, string>> = {
    $diskimage: '.*',
    $provider: '.*',
    $job: 'nodepool-builder',
    $__rate_interval: '1m',
  };
  const isKnown = (name: string): boolean =>
    RegExp(`^# TYPE ${name.replace(/_(?:bucket|sum|count)$/, '')}(?:_bucket|_sum|_count)? `, 'm').test(text);
  for (const { title, targets = [] } of dashboard.panels) {
    for (const { expr } of targets) {
      const expression = expr.replace(/\$\w+/g, (name) =>
        name === '$1' ? name : (variables[name] ?? assert.fail(`${title}: ${name}`)),
      );
      for (const [name] of expr.matchAll(/\b(?:nodepool_builder|process|nodejs)_\w+/g)) {
        assert.ok(isKnown(name), `${title}: ${name}`);
      }
      if (WITHOUT_RESULT.test(expr)) await query(expression);
      else await untilResult(title, expression);
    }
  }
  for (const { definition } of dashboard.templating.list.slice(1)) {
    const [, metric = '', label = ''] = /^label_values\((\w+), (\w+)\)$/.exec(definition ?? '') ?? [];
    await untilResult(definition ?? '', `count by (${label}) (${metric}{${label}!=""})`);
  }
  const rules = await readFile(join(EXAMPLE, 'rules.yml'), 'utf8');
  for (const [name] of rules.matchAll(/\bnodepool_builder_\w+/g)) assert.ok(isKnown(name), name);
  await waitUntil('the rules to be evaluated', async () => {
    const { data } = (await (await fetch(`${api}/rules`)).json()) as {
      readonly data: {
        readonly groups: readonly { readonly rules: readonly { readonly health: string }[] }[];
      };
    };
    const health = data.groups.flatMap((group) => group.rules.map((rule) => rule.health));
    return health.length > 0 && health.every((one) => one === 'ok');
  });
});

test('the dashboard in examples/monitoring has panels that do not overlap and use the chosen data source', async () => {
  const { panels, templating } = JSON.parse(
    await readFile(join(EXAMPLE, 'dashboard.json'), 'utf8'),
  ) as Dashboard;
  assert.equal(templating.list[0]?.type, 'datasource');
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
  const taken = new Map<string, string>();
  for (const { title, type, gridPos, datasource, targets = [] } of panels) {
    assert.ok(['row', 'stat', 'table', 'timeseries'].includes(type), title);
    assert.equal(targets.length > 0, type !== 'row', title);
    for (const one of type === 'row' ? [] : [{ datasource }, ...targets]) {
      assert.match(one.datasource?.uid ?? '', /^\$\{datasource\}$/, title);
    }
    assert.ok(gridPos.x + gridPos.w <= 24, title);
    for (let { x } = gridPos; x < gridPos.x + gridPos.w; x += 1) {
      for (let { y } = gridPos; y < gridPos.y + gridPos.h; y += 1) {
        assert.equal(taken.get(`${x} ${y}`), undefined, title);
        taken.set(`${x} ${y}`, title);
      }
    }
  }
});
