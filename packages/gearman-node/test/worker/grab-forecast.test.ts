import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GrabForecast } from '../../src/worker/grab-forecast.ts';

/** Simulates single jobs. Returns for each whether it saved the grab after it. */
function loneJobs(forecast: GrabForecast, count: number): boolean[] {
  return Array.from({ length: count }, () => {
    forecast.served();
    const { isLoneJob } = forecast;
    forecast.slept();
    return isLoneJob;
  });
}

test('a worker expects a lone job after some lone jobs, except every eighth time', () => {
  const spared = loneJobs(new GrabForecast(), 18);
  assert.deepEqual(
    spared.flatMap((isSpared, index) => (isSpared ? [] : [index])),
    [0, 1, 2, 3, 8, 16],
  );
});

test('a second job before a sleep resets the count of lone jobs, and a sleep without a job does not', () => {
  const forecast = new GrabForecast();
  loneJobs(forecast, 5);
  forecast.slept();
  assert.deepEqual(loneJobs(forecast, 1), [true]);
  forecast.served();
  forecast.served();
  assert.equal(forecast.isLoneJob, false);
  forecast.slept();
  assert.deepEqual(loneJobs(forecast, 5), [false, false, false, false, true]);
});

test('the grab window doubles with each job, and is 1 after a grab without a job', () => {
  const forecast = new GrabForecast();
  forecast.served();
  forecast.served();
  assert.equal(forecast.window, 4);
  forecast.drained();
  assert.equal(forecast.window, 1);
  forecast.served();
  forecast.slept();
  assert.equal(forecast.window, 1);
});
