// Only in test:all: it tests the benchmarks.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runParts } from '../../../scripts/bench/run-parts.ts';
import type { Benchmark } from '../../benchmarks/benchmark.ts';

const part = (name: string): Benchmark => ({ name, run: async () => [{ what: name, result: '1 s' }] });
const broken = { name: 'broken', run: () => Promise.reject(new Error('no Keystone')) };
const run = ({ run: measure }: Benchmark) => measure({} as never);

test('a benchmark’s part that cannot run is reported, and the others’ results are kept', async () => {
  const reported: string[] = [];
  const { signal } = new AbortController();
  const report = (name: string, error: unknown): void => void reported.push(`${name}: ${String(error)}`);
  const rows = await runParts([part('first'), broken, part('last')], run, report, signal);
  assert.deepEqual(rows, [
    { what: 'first', result: '1 s' },
    { what: 'All of `broken`', result: 'could not run' },
    { what: 'last', result: '1 s' },
  ]);
  assert.deepEqual(reported, ['broken: Error: no Keystone']);
});

test('an interrupt ends all parts of a benchmark', async () => {
  const stop = new AbortController();
  const interrupted: Benchmark = {
    name: 'interrupted',
    run: () => {
      stop.abort(new Error('stopped by SIGINT'));
      return Promise.reject(new Error('a child was killed'));
    },
  };
  await assert.rejects(
    runParts([interrupted, part('next')], run, () => assert.fail('reported'), stop.signal),
    /stopped by SIGINT/,
  );
});
