// Only in test:all: it needs Prometheus.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { freePort } from '../../../../scripts/free-port.ts';
import { readPage } from '../../../../test/docs/markdown.ts';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import { waitUntil } from '../../../../test/fixtures/wait-until.ts';
import type { WebSite } from '../../../../test/fixtures/web-site.ts';
import { startSite, untilCounted } from './metrics-site.ts';

const EXAMPLE = join(import.meta.dirname, '../../../../examples/monitoring');

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

/** Starts Prometheus with the example's configuration, which scrapes a site each second. */
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

/** Queries without a result in the test's site: nothing has failed that way, and a directory has no requests. */
const WITHOUT_RESULT = /step_retries|orphan|provider_request/;

test('promtool accepts real metrics, and Prometheus evaluates each dashboard query and rule in examples/monitoring on them', async (t) => {
  const dashboard = JSON.parse(await readFile(join(EXAMPLE, 'dashboard.json'), 'utf8')) as Dashboard;
  const site = await startSite(t);
  const text = await untilCounted(site);
  execFileSync('promtool', ['check', 'metrics'], { input: text, stdio: ['pipe', 'ignore', 'inherit'] });
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
