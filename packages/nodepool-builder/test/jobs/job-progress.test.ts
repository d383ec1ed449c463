import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { reportProgress } from '../../src/jobs/job-progress.ts';

describe('the progress of a job', () => {
  it('goes out once per per cent, and never backwards', () => {
    const sent: [number, number][] = [];
    const report = reportProgress({
      sendStatus: (numerator, denominator) => sent.push([numerator, denominator]),
    });
    for (const done of [0, 1, 2, 250, 251, 249, 1000, 2000]) report({ done, total: 1000 });
    assert.deepEqual(sent, [
      [0, 100],
      [25, 100],
      [100, 100],
    ]);
  });

  it('of nothing is nothing', () => {
    const sent: number[] = [];
    reportProgress({ sendStatus: (numerator) => sent.push(numerator) })({ done: 0, total: 0 });
    assert.deepEqual(sent, [0]);
  });
});
