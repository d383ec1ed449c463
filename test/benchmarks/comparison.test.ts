// Only in test:all: it tests the benchmarks.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bestOf, compare, figureOf, ratioOf, ratioRow, rowsOf } from './comparison.ts';

const SAMPLES = new Map([
  ['one', [100, 200, 1000]],
  ['other', [300, 100, 1500]],
]);

test('contenders in a comparison take turns, and warm-ups do not count', async () => {
  const order: string[] = [];
  const contender = (name: string) => ({ name, sample: async () => order.push(name) });
  const samples = await compare([contender('a'), contender('b')], {
    signal: new AbortController().signal,
    after: () => {},
    progress: () => {},
  });
  assert.equal(order.join(''), `ab${'baab'.repeat(4)}ba`);
  assert.deepEqual(samples.get('a'), [4, 5, 8, 9, 12, 13, 16, 17, 20]);
  assert.deepEqual(samples.get('b'), [3, 6, 7, 10, 11, 14, 15, 18, 19]);
});

test('a comparison takes no sample after an abort', async () => {
  const aborted = new AbortController();
  let taken = 0;
  const sample = async () => {
    taken += 1;
    if (taken === 3) aborted.abort(new Error('stopped'));
    return taken;
  };
  const comparing = compare([{ name: 'a', sample }], {
    signal: aborted.signal,
    after: () => {},
    progress: () => {},
  });
  await assert.rejects(comparing, /stopped/);
  assert.equal(taken, 3);
});

test('a comparison’s row has the median, the spread, and the median of each round’s ratios', () => {
  const [one, other] = rowsOf('jobs', { name: 'jobs/s', digits: 0 }, SAMPLES);
  assert.equal(one?.result, '200 jobs/s (100–1,000)');
  assert.equal(other?.result, '300 jobs/s (100–1,500), × 1.50');
  assert.deepEqual(other?.figure, { group: 'jobs, jobs/s', label: 'other', value: 300, min: 100, max: 1500 });
});

test('a benchmark’s bar is met by the median of the ratios', () => {
  const ratio = ratioOf(SAMPLES, 'other', 'one');
  assert.deepEqual([ratio.min, ratio.median, ratio.max], [0.5, 1.5, 3]);
  const met = (bar: Parameters<typeof ratioRow>[2]) => ratioRow('other', ratio, bar).bar?.met;
  assert.deepEqual([met({ atLeast: 1.5 }), met({ atLeast: 1.6 })], [true, false]);
  assert.deepEqual([met({ atMost: 1.5 }), met({ atMost: 1.4 })], [true, false]);
  assert.equal(ratioRow('other', ratio, { atLeast: 1 / 3 }).bar?.limit, '≥ × 0.33');
});

test('the best contender has the greatest median, and a name without samples is rejected', () => {
  assert.equal(bestOf(SAMPLES, ['one', 'other']), 'other');
  assert.throws(() => ratioOf(SAMPLES, 'one', 'none'), /"none" was not measured/);
});

test('one figure is selected from samples with several figures', () => {
  const samples = new Map([['a', [{ time: 1 }, { time: 2 }]]]);
  assert.deepEqual([...figureOf(samples, ({ time }) => time)], [['a', [1, 2]]]);
});
