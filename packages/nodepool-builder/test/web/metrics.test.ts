// Not a unit test: it starts promtool and a builder.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { waitUntil } from '../../../../test/fixtures/wait-until.ts';
import { startWebSite } from '../../../../test/fixtures/web-site.ts';

const EXAMPLE = join(import.meta.dirname, '../../../../examples/monitoring');

test('/metrics has the state of images, builders and job servers, and promtool accepts it', async (t) => {
  const site = await startWebSite(t);
  const text = await waitUntil('the metrics of two uploads', async () => {
    const response = await fetch(`${site.url}/metrics`);
    assert.equal(response.status, 200);
    assert.match(response.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
    const body = await response.text();
    return body.match(/^nodepool_builder_newest_upload_timestamp_seconds\{/gm)?.length === 2 && body;
  });
  execFileSync('promtool', ['check', 'metrics'], { input: text, stdio: ['pipe', 'ignore', 'inherit'] });
  const sampleOf = (series: string): number => {
    const line = text.split('\n').find((one) => one.startsWith(`${series} `));
    return Number(line?.slice(series.length) ?? assert.fail(`no ${series} in ${text}`));
  };
  assert.equal(sampleOf('nodepool_builder_builds{diskimage="docs",state="ready"}'), 1);
  assert.equal(sampleOf('nodepool_builder_builders'), 1);
  assert.equal(sampleOf(`nodepool_builder_running_jobs{host="${hostname()}",kind="build"}`), 0);
  const built = sampleOf('nodepool_builder_newest_build_timestamp_seconds{diskimage="docs"}');
  assert.ok(Math.abs(Date.now() / 1000 - built) < 300);
  assert.ok(sampleOf('nodepool_builder_last_build_duration_seconds{diskimage="docs"}') >= 0);
  assert.match(text, /^nodepool_builder_disk_free_bytes\{host="[^"]+",images_dir="[^"]+"\} \d/m);
  assert.match(text, /^nodepool_builder_job_server_up\{server="[^"]+"\} 1$/m);
  assert.match(text, /^process_resident_memory_bytes \d/m);

  const rules = await readFile(join(EXAMPLE, 'rules.yml'), 'utf8');
  for (const [name] of rules.matchAll(/\bnodepool_builder_\w+/g)) {
    assert.ok(text.includes(`# TYPE ${name} gauge`), `the alert rules use ${name}`);
  }
});

test('/livez answers while the process lives', async (t) => {
  const site = await startWebSite(t);
  const response = await fetch(`${site.url}/livez`);
  assert.deepEqual([response.status, await response.text()], [200, 'OK']);
});

test('examples/monitoring: promtool accepts the alert rules and their tests', () => {
  execFileSync('promtool', ['check', 'rules', 'rules.yml'], { cwd: EXAMPLE });
  execFileSync('promtool', ['test', 'rules', 'rules.test.yml'], { cwd: EXAMPLE });
});
