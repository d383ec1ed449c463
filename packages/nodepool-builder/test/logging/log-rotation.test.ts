import assert from 'node:assert/strict';
import { readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import { timeRotation } from '../../src/logging/log-rotation.ts';
import type { TimeRotation } from '../../src/logging/log-settings.ts';

const HOUR = 3_600_000;

/** Makes a file whose last write was at `written`, with the clock of its rotation. */
function rotatingFile(t: TestContext, written: number, settings: Partial<TimeRotation>) {
  const directory = temporaryDirectory(t);
  const path = join(directory, 'b.log');
  const clock = { now: written };
  const write = (): void => {
    writeFileSync(path, 'line\n');
    utimesSync(path, clock.now / 1000, clock.now / 1000);
  };
  write();
  const rotation = timeRotation(
    path,
    { by: 'time', unit: 'H', interval: 1, backups: 0, utc: true, ...settings },
    () => clock.now,
  );
  return { path, clock, write, rotation, names: () => readdirSync(directory).toSorted() };
}

describe('a log file that is rotated by time', () => {
  it('a log file rotated by time is renamed to its start time at the end of the interval', (t) => {
    const start = Date.UTC(2016, 10, 18, 14, 30);
    const { clock, write, rotation, names } = rotatingFile(t, start, { interval: 8 });
    clock.now = start + 8 * HOUR - 1;
    assert.equal(rotation.isDue(5, 5), false);
    clock.now += 1;
    assert.equal(rotation.isDue(5, 5), true);
    rotation.rotate();
    write();
    assert.deepEqual(names(), ['b.log', 'b.log.2016-11-18_14']);
    assert.equal(rotation.isDue(5, 5), false);
    clock.now += 8 * HOUR;
    rotation.rotate();
    assert.deepEqual(names(), ['b.log.2016-11-18_14', 'b.log.2016-11-18_22']);
  });

  it('log rotation by time keeps the newest old files and leaves other files alone', (t) => {
    const start = Date.UTC(2016, 10, 18, 14);
    const { clock, write, rotation, names } = rotatingFile(t, start, { backups: 2 });
    for (let hour = 1; hour <= 4; hour += 1) {
      clock.now = start + hour * HOUR;
      rotation.rotate();
      write();
    }
    assert.deepEqual(names(), ['b.log', 'b.log.2016-11-18_16', 'b.log.2016-11-18_17']);
  });

  it('a log file rotated by time may have been removed, as in Python', (t) => {
    const { path, clock, rotation, names } = rotatingFile(t, Date.UTC(2016, 10, 18, 14), {});
    rmSync(path);
    clock.now += HOUR;
    rotation.rotate();
    assert.deepEqual(names(), []);
    assert.equal(rotation.isDue(5, 5), false);
  });

  const cases: readonly (readonly [unit: TimeRotation['unit'], due: number, suffix: string])[] = [
    ['S', Date.UTC(2016, 10, 18, 14, 30, 1), '2016-11-18_14-30-00'],
    ['M', Date.UTC(2016, 10, 18, 14, 31), '2016-11-18_14-30'],
    ['D', Date.UTC(2016, 10, 19, 14, 30), '2016-11-18'],
    ['MIDNIGHT', Date.UTC(2016, 10, 19), '2016-11-18'],
    // The 18th of November 2016 was a Friday.
    ['W4', Date.UTC(2016, 10, 19), '2016-11-18'],
    ['W6', Date.UTC(2016, 10, 21), '2016-11-20'],
    ['W3', Date.UTC(2016, 10, 25), '2016-11-24'],
  ];
  for (const [unit, due, suffix] of cases) {
    it(`log rotation with unit ${unit} is due at ${new Date(due).toISOString()}`, (t) => {
      const { clock, rotation, names } = rotatingFile(t, Date.UTC(2016, 10, 18, 14, 30), { unit });
      clock.now = due - 1;
      assert.equal(rotation.isDue(5, 5), false);
      clock.now = due;
      assert.equal(rotation.isDue(5, 5), true);
      rotation.rotate();
      assert.deepEqual(names(), [`b.log.${suffix}`]);
    });
  }

  it('log rotation with unit MIDNIGHT is due at local midnight', (t) => {
    const { clock, rotation } = rotatingFile(t, new Date(2016, 10, 18, 14).getTime(), {
      unit: 'MIDNIGHT',
      utc: false,
    });
    clock.now = new Date(2016, 10, 19).getTime() - 1;
    assert.equal(rotation.isDue(5, 5), false);
    clock.now += 1;
    assert.equal(rotation.isDue(5, 5), true);
  });

  it('a rotated log file has the date of its day, even if that day had 23 hours', (t) => {
    const { TZ } = process.env;
    undoAfter(t, () => {
      if (TZ === undefined) delete process.env.TZ;
      else process.env.TZ = TZ;
    });
    process.env.TZ = 'Europe/Berlin';
    const { clock, write, rotation, names } = rotatingFile(t, new Date(2016, 2, 26, 14).getTime(), {
      unit: 'MIDNIGHT',
      utc: false,
    });
    for (const day of [27, 28, 29]) {
      clock.now = new Date(2016, 2, day).getTime();
      rotation.rotate();
      write();
    }
    assert.deepEqual(names(), ['b.log', 'b.log.2016-03-26', 'b.log.2016-03-27', 'b.log.2016-03-28']);
  });
});
