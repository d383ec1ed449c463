import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ProgressMeter } from '../../../src/daemon/jobs/progress-meter.ts';

const MIB = 2 ** 20;

/** Creates a meter with a clock that `at` sets, in seconds. */
function meterAt(expected?: number) {
  let time = 0;
  const meter = new ProgressMeter({ expected, now: () => time * 1000 });
  const at = (seconds: number): ProgressMeter => {
    time = seconds;
    return meter;
  };
  return at;
}

describe('the progress of a transfer', () => {
  const size = 1000 * MIB;

  it('a transfer’s progress has a rate and the time left', () => {
    const at = meterAt();
    for (let second = 0; second <= 10; second += 1) at(second).update({ done: second, total: 100, size });
    assert.deepEqual(at(10).read(), { percent: 10, 'bytes-per-second': 10 * MIB, 'seconds-left': 90 });
  });

  it('a transfer’s rate covers the last 30 seconds', () => {
    const at = meterAt();
    for (let second = 0; second <= 100; second += 1) {
      const done = second < 50 ? second * MIB : (50 + (second - 50) * 2) * MIB;
      at(second).update({ done, total: size, size });
    }
    assert.deepEqual(at(100).read(), { percent: 15, 'bytes-per-second': 2 * MIB, 'seconds-left': 425 });
  });

  it('a transfer that stands still has no time left in its progress', () => {
    const at = meterAt();
    at(0).update({ done: 0, total: size, size });
    at(10).update({ done: 100 * MIB, total: size, size });
    assert.deepEqual(at(100).read(), { percent: 10, 'bytes-per-second': 0 });
  });

  it('a transfer’s rate is zero 30 seconds after its last byte, whenever that was', () => {
    const at = meterAt();
    for (let tick = 0; tick <= 26; tick += 1) at(tick * 0.4).update({ done: tick, total: 100, size });
    assert.deepEqual(at(100).read(), { percent: 26, 'bytes-per-second': 0 });
  });

  it('a transfer’s progress has neither rate nor time left at the beginning and at the end', () => {
    const at = meterAt();
    assert.deepEqual(at(0).read(), { percent: 0 });
    at(0).update({ done: 0, total: size, size });
    assert.deepEqual(at(0.5).read(), { percent: 0 });
    at(10).update({ done: size, total: size, size });
    assert.deepEqual(at(11).read(), { percent: 100 });
  });
});

describe('the progress of a transfer that starts again', () => {
  const size = 1000 * MIB;
  const error = new Error('connect ECONNREFUSED');

  /** Creates a meter whose transfer failed after 44 %, at a rate of 10 MiB/s. */
  function failedAt44Percent() {
    const at = meterAt();
    for (let second = 0; second <= 44; second += 1) at(second).update({ done: second, total: 100, size });
    at(45).retry({ error, attempt: 2, attempts: Number.POSITIVE_INFINITY, delay: 5 });
    return at;
  }

  it('a retry shows neither the rate nor the time left of the transfer that failed', (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: 1_000_000 });
    assert.deepEqual(failedAt44Percent()(46).read(), {
      percent: 44,
      retrying: 'attempt 2, after connect ECONNREFUSED',
      'retry-at': '1970-01-01T00:16:45.000Z',
    });
  });

  it('a transfer that starts again shows its new position, and the rate since then', () => {
    const at = failedAt44Percent();
    for (let second = 50; second <= 60; second += 1) {
      at(second).update({ done: 2 * (second - 49) + 0.5, total: 1000, size });
    }
    assert.deepEqual(at(60).read(), { percent: 2, 'bytes-per-second': 2 * MIB, 'seconds-left': 489 });
  });
});

it('a transfer’s rate does not count the time before its first byte', () => {
  const at = meterAt();
  const size = 100 * MIB;
  at(0).update({ done: 0, total: 100 });
  at(8).update({ done: 0, total: size, size });
  at(20).update({ done: MIB, total: size, size });
  at(22).update({ done: 11 * MIB, total: size, size });
  assert.deepEqual(at(22).read(), { percent: 11, 'bytes-per-second': 5 * MIB, 'seconds-left': 18 });
});

it('a transfer has no rate before the end of its second part, if its provider reports whole parts', () => {
  const at = meterAt();
  const size = 100 * MIB;
  at(10).update({ done: 10 * MIB, total: size, size });
  assert.deepEqual(at(19).read(), { percent: 10 });
  at(20).update({ done: 20 * MIB, total: size, size });
  assert.deepEqual(at(20).read(), { percent: 20, 'bytes-per-second': MIB, 'seconds-left': 80 });
  assert.deepEqual(at(60).read(), { percent: 20, 'bytes-per-second': 0 });
});

describe('the progress of a build', () => {
  it('a build’s progress follows the last build’s duration if its builder reports less', () => {
    const at = meterAt(200);
    assert.deepEqual(at(20).read(), { percent: 10, 'seconds-left': 180 });
    at(30).update({ done: 50, total: 100 });
    assert.deepEqual(at(40).read(), { percent: 50, 'seconds-left': 160 });
    assert.deepEqual(at(120).read(), { percent: 60, 'seconds-left': 80 });
  });

  it('a build’s progress stays below 100 % if it takes longer than the last build', () => {
    const at = meterAt(100);
    at(50).update({ done: 80, total: 100 });
    assert.deepEqual(at(200).read(), { percent: 95 });
  });

  it('a build that is slower than the last one stays near its phase, without a time left', () => {
    const at = meterAt(1140);
    at(600).update({ done: 35, total: 100, phase: 'install.d' });
    assert.deepEqual(at(600).read(), { percent: 52, phase: 'install.d', 'seconds-left': 540 });
    assert.deepEqual(at(1137).read(), { percent: 60, phase: 'install.d' });
    at(1140).update({ done: 55, total: 100, phase: 'post-install.d' });
    assert.deepEqual(at(1140).read(), { percent: 80, phase: 'post-install.d' });
  });

  it('a build that is a quarter behind the last one has no time left in its last seconds either', () => {
    const at = meterAt(300);
    at(290).update({ done: 72, total: 100, phase: 'cleanup.d' });
    assert.deepEqual(at(291).read(), { percent: 95, phase: 'cleanup.d', 'seconds-left': 9 });
    assert.deepEqual(at(297).read(), { percent: 95, phase: 'cleanup.d' });
  });

  it('the first build’s progress has its current phase, but no time left', () => {
    const at = meterAt();
    assert.deepEqual(at(50).read(), { percent: 0 });
    at(60).update({ done: 25, total: 100, phase: 'root.d' });
    assert.deepEqual(at(60).read(), { percent: 25, phase: 'root.d' });
  });

  it('a build’s progress never decreases', () => {
    const at = meterAt(100);
    assert.equal(at(90).read().percent, 90);
    at(91).update({ done: 35, total: 100 });
    assert.equal(at(91).read().percent, 90);
  });
});

it('a build’s progress shows the next attempt and the error until it ends or resumes', (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: 1_000_000 });
  const at = meterAt();
  const retry = { error: new Error('no route to host'), attempt: 5, attempts: 6, delay: 11.4 };
  at(1).retry(retry);
  const retrying = 'attempt 5 of 6, after no route to host';
  assert.deepEqual(at(1).read(), { percent: 0, retrying, 'retry-at': '1970-01-01T00:16:51.400Z' });
  at(2).retry(undefined);
  assert.deepEqual(at(2).read(), { percent: 0 });
  at(3).retry(retry);
  at(4).update({ done: 1, total: 100 });
  assert.deepEqual(at(4).read(), { percent: 1 });
});

it('a build’s progress shows what the build waits for, and no time left meanwhile', () => {
  const at = meterAt(100);
  at(0).update({ done: 0, total: 100, waiting: 'disk space' });
  assert.deepEqual(at(50).read(), { percent: 0, waiting: 'disk space' });
  at(50).update({ done: 0, total: 100 });
  assert.deepEqual(at(50).read(), { percent: 50, 'seconds-left': 50 });
});
