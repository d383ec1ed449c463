import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GrabWindow } from '../../src/worker/grab-window.ts';

/** Simulates single jobs. Returns for each whether it saved the following grab. */
function loneJobs(grabWindow: GrabWindow, count: number): boolean[] {
  return Array.from({ length: count }, () => {
    grabWindow.served();
    const { isLoneJob } = grabWindow;
    grabWindow.slept();
    return isLoneJob;
  });
}

test('a worker expects a lone job after some lone jobs, except every eighth time', () => {
  const spared = loneJobs(new GrabWindow(), 18);
  assert.deepEqual(
    spared.flatMap((isSpared, index) => (isSpared ? [] : [index])),
    [0, 1, 2, 3, 8, 16],
  );
});

test('a second job before a sleep resets the count of lone jobs, and a sleep without a job does not', () => {
  const grabWindow = new GrabWindow();
  loneJobs(grabWindow, 5);
  grabWindow.slept();
  assert.deepEqual(loneJobs(grabWindow, 1), [true]);
  grabWindow.served();
  grabWindow.served();
  assert.equal(grabWindow.isLoneJob, false);
  grabWindow.slept();
  assert.deepEqual(loneJobs(grabWindow, 5), [false, false, false, false, true]);
});

test('the grab window doubles with each job, and is 1 after a grab without a job', () => {
  const grabWindow = new GrabWindow();
  grabWindow.served();
  grabWindow.served();
  assert.equal(grabWindow.size, 4);
  grabWindow.drained();
  assert.equal(grabWindow.size, 1);
  grabWindow.served();
  grabWindow.slept();
  assert.equal(grabWindow.size, 1);
});
