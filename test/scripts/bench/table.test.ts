// Only in test:all: it tests the benchmarks.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { SUITES } from '../../../scripts/bench/suites.ts';
import { replaceResults, resultTable } from '../../../scripts/bench/table.ts';

test('a table of results has a row for each measurement, which says if its bar is missed', () => {
  const table = resultTable([
    { what: 'start', result: '0.5 s', bar: { limit: '< 2 s', met: true } },
    { what: 'stop', result: '3 s', bar: { limit: '< 2 s', met: false } },
    { what: 'a|b', result: '12 ms' },
  ]);
  assert.deepEqual(table.split('\n'), [
    '| measured | result | bar |',
    '| --- | --- | --- |',
    '| start | 0.5 s | < 2 s |',
    '| stop | 3 s | < 2 s, **missed** |',
    '| a\\|b | 12 ms |  |',
  ]);
});

test('a table of results writes the common words of consecutive rows once', () => {
  const table = resultTable([
    { what: 'alone: one', result: '1 s' },
    { what: 'both: one', result: '2 s' },
    { what: 'both: two', result: '3 s' },
  ]);
  assert.deepEqual(table.split('\n').slice(2), [
    '| alone: one | 1 s |  |',
    '| *both* |  |  |',
    '| one | 2 s |  |',
    '| two | 3 s |  |',
  ]);
});

test('a suite’s results replace its earlier ones, and the rest of the page stays', async () => {
  const page = await readFile(join(import.meta.dirname, '../../../docs/benchmarks.md'), 'utf8');
  const [first, second] = ['Results one:\n\n| $& |', 'Results two'];
  const once = replaceResults(page, 'upload', first);
  const [before = '', after = ''] = once.split(`\n${first}\n`);
  assert.ok(page.startsWith(before) && page.endsWith(after));
  assert.match(before, /^# Measurements/);
  assert.match(after, /\n## Downloads of artifacts\n/);
  assert.equal(replaceResults(once, 'upload', second), `${before}\n${second}\n${after}`);
});

test('each benchmark suite has a place for its results in its page', async () => {
  for (const [name, { page }] of Object.entries(SUITES)) {
    assert.match(replaceResults(await readFile(page, 'utf8'), name, 'new results'), /\nnew results\n/, name);
  }
});

test('a page without a place for benchmark results is rejected', () => {
  assert.throws(() => replaceResults('# A page', 'web', 'results'), /does not contain "<!-- results of web/);
  const reversed = '<!-- end of results -->\n<!-- results of web: written with --write -->';
  assert.throws(() => replaceResults(reversed, 'web', 'results'), /does not contain "<!-- results of web/);
});
