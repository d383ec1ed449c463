import assert from 'node:assert/strict';
import { test } from 'node:test';
import { barChart } from '../../../scripts/bench/chart.ts';

const CHART = barChart([
  { group: 'fast, jobs/s', label: 'theirs', value: 100, min: 50, max: 200 },
  { group: 'fast, jobs/s', label: '@nodepool-builder/ours', value: 200, min: 200, max: 200 },
  { group: 'R&D <1', label: 'theirs', value: 5, min: 5, max: 5 },
]);

test('the bars in a chart are as long as their values, on one scale in each group', () => {
  const widths = Array.from(CHART.matchAll(/<rect x="300" .* width="(\d+)"/g), ([, width]) => width);
  assert.deepEqual(widths, ['200', '400', '400']);
  assert.match(CHART, /<path d="M400 \d+H700"/);
});

test('this project’s bars stand out in a chart', () => {
  const colours = Array.from(CHART.matchAll(/<rect x="300" .* fill="([^"]+)"/g), ([, colour]) => colour);
  assert.equal(colours[0], colours[2]);
  assert.notEqual(colours[0], colours[1]);
});

test('each group in a chart has its title once, and text is escaped', () => {
  assert.equal(CHART.match(/fast, jobs\/s/g)?.length, 1);
  assert.match(CHART, />R&amp;D &lt;1</);
});

test('a chart is high enough for all bars', () => {
  const height = Number(/viewBox="0 0 \d+ (\d+)"/.exec(CHART)?.[1]);
  const lowest = Math.max(...Array.from(CHART.matchAll(/ y="(\d+)"/g), ([, y]) => Number(y)));
  assert.ok(height > lowest, `${height} > ${lowest}`);
});
