import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { replaceResults, resultTable } from '../../../scripts/bench/table.ts';

test('a row for each measurement says whether its bar is met', () => {
  const table = resultTable([
    { what: 'start', result: '0.5 s', bar: { limit: '< 2 s', met: true } },
    { what: 'stop', result: '3 s', bar: { limit: '< 2 s', met: false } },
    { what: 'a|b', result: '12 ms' },
  ]);
  assert.deepEqual(table.split('\n'), [
    '| measured | result | bar | met |',
    '| --- | --- | --- | --- |',
    '| start | 0.5 s | < 2 s | yes |',
    '| stop | 3 s | < 2 s | **no** |',
    '| a\\|b | 12 ms |  |  |',
  ]);
});

test('results replace earlier ones, and the rest of the page stays', async () => {
  const page = await readFile(join(import.meta.dirname, '../../../docs/benchmarks.md'), 'utf8');
  const [first, second] = ['Results one:\n\n| $& |', 'Results two'];
  const once = replaceResults(page, first);
  const [before = '', after = ''] = once.split(`\n${first}\n`);
  assert.ok(page.startsWith(before) && page.endsWith(after));
  assert.match(before, /^# Benchmarks/);
  assert.match(after, /\n## What is measured\n/);
  assert.equal(replaceResults(once, second), `${before}\n${second}\n${after}`);
});

test('parts that are measured by themselves have a table of their own', () => {
  const end = '<!-- end of results -->';
  const place = (parts: string, results: string): string =>
    `<!-- results${parts}: written with --write -->\n${results}\n${end}`;
  const page = `${place('', 'all')}\n\n${place(' ebs azure', 'some')}`;
  const expected = `${place('', 'all')}\n\n${place(' ebs azure', 'others')}`;
  assert.equal(replaceResults(page, 'others', ['ebs', 'azure']), expected);
  assert.throws(() => replaceResults(page, 'others', ['azure']), /has no "<!-- results azure: written/);
});

test('a page without a place for results is refused', () => {
  assert.throws(() => replaceResults('# A page', 'results'), /has no "<!-- results/);
  const reversed = '<!-- end of results -->\n<!-- results: written with --write -->';
  assert.throws(() => replaceResults(reversed, 'results'), /has no "<!-- results/);
});
