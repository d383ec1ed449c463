import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FleetMonitor } from '../src/fleet-monitor.ts';
import type { FleetStatus } from '../src/gearman/builder-fleet.ts';

const statusOf = (...uploads: readonly string[]): FleetStatus => ({
  offered: { builds: new Set(), uploads: new Set(uploads), deletes: new Set() },
  isComplete: true,
  copied: new Set(),
});

/** A monitor whose fleet offers the images that `poll` names. */
function setUp() {
  const site = { status: statusOf(), now: 0, expected: ['a', 'b'] as readonly string[], changes: 0 };
  const monitor = new FleetMonitor({
    fleet: { status: async () => site.status },
    status: site.status,
    expected: () => site.expected,
    changed: () => {
      site.changes += 1;
    },
    elapsed: () => site.now,
  });
  const poll = async (now: number, status: FleetStatus): Promise<void> => {
    site.now = now;
    site.status = status;
    await monitor.refresh();
  };
  return { site, monitor, poll };
}

test('an image is absent from the first poll without it until it is offered again', async () => {
  const { monitor, poll } = setUp();
  await poll(1000, statusOf('a'));
  await poll(2000, statusOf());
  assert.deepEqual([monitor.absence('a'), monitor.absence('b')], [0, 1000]);
  await poll(3000, statusOf('b'));
  assert.deepEqual([...monitor.absentSince], [['a', 2000]]);
  await poll(4000, statusOf());
  assert.equal(monitor.absentSince.get('b'), 4000);
});

test('an image that is no longer expected is not absent', async () => {
  const { site, monitor, poll } = setUp();
  await poll(1000, statusOf());
  site.expected = [];
  await poll(2000, statusOf());
  assert.equal(monitor.absence('a'), undefined);
  site.expected = ['a'];
  await poll(3000, statusOf());
  assert.equal(monitor.absentSince.get('a'), 3000);
});

test('while a job server does not answer, no absence starts or ends', async () => {
  const { monitor, poll } = setUp();
  await poll(1000, statusOf('a'));
  await poll(2000, { ...statusOf('b'), isComplete: false });
  assert.deepEqual([...monitor.absentSince], [['b', 1000]]);
});

test('a change of what builders offer is reported; the same offer is not', async () => {
  const { site, poll } = setUp();
  await poll(1000, statusOf('a'));
  await poll(2000, statusOf('a'));
  assert.equal(site.changes, 1);
  await poll(3000, statusOf('b'));
  assert.equal(site.changes, 2);
});
