import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import type { OperationOptions } from '@nodepool-builder/image-builder';
import { undoAfter } from '../../../test/fixtures/undo-after.ts';
import { withCode } from '../../../test/fixtures/with-code.ts';
import type { OnInstance } from '../src/index.ts';
import { InstanceRecords } from '../src/instance-records.ts';
import { IMAGE_ID, OnInstanceSite } from './on-instance-site.ts';

const RESUME: Partial<OnInstance> = {
  'after-restart': 'resume',
  steps: [
    'echo begun >> /opt/first',
    'echo begun >> /opt/second; echo waiting; while [ ! -e /opt/go ]; do sleep 0.05; done',
  ],
};

/** Kills a build in its second step. Returns the site of the next process. */
async function killed(t: TestContext): Promise<OnInstanceSite> {
  const site = await OnInstanceSite.start(t);
  const waiting = Promise.withResolvers<void>();
  const abort = new AbortController();
  const build = site.build(site.builder(RESUME), {
    signal: abort.signal,
    onLine: (line) => {
      if (line === 'waiting') waiting.resolve();
    },
  });
  const ended = build.catch(() => undefined);
  await Promise.race([waiting.promise, build]);
  const next = await site.crash(t);
  abort.abort();
  await ended;
  assert.equal(next.provider.instances.length, 1);
  return next;
}

async function look(t: TestContext, site: OnInstanceSite): Promise<void> {
  const reaper = await site.reaper();
  undoAfter(t, () => reaper[Symbol.asyncDispose]());
}

function inTenMinutes(): string {
  return new Date(Date.now() + 600_000).toISOString();
}

describe('builds after a crash', () => {
  test('an instance left by a crash is deleted when the next process starts, by default', async (t) => {
    const site = await OnInstanceSite.start(t);
    await site.leaveBehind({}, {});
    await look(t, site);
    assert.deepEqual(site.provider.instances, []);
    assert.deepEqual(site.deletedOrphans, [site.provider.name]);
    assert.deepEqual(await site.recordFiles(), []);
    assert.deepEqual(site.repository.logger.lines, [
      `info image ${IMAGE_ID}: deleted the instances of an earlier build`,
    ]);
  });

  test('an instance left by a crash is deleted when the job is assigned again, by default', async (t) => {
    const site = await OnInstanceSite.start(t);
    const left = await site.leaveBehind({}, {});
    await site.build(site.builder());
    assert.ok(left.isDestroyed);
    assert.deepEqual(site.provider.instances, []);
  });

  test('a build with after-restart resume continues after the last completed step and kills the interrupted one', async (t) => {
    const site = await killed(t);
    await look(t, site);
    const { instance } = site.provider;
    await writeFile(join(instance.disk, 'opt/go'), '');
    const image = await site.build(site.builder(RESUME));
    assert.equal(site.provider.launched.length, 1);
    assert.equal(site.read(image, 'opt/first'), 'begun\n');
    assert.equal(site.read(image, 'opt/second'), 'begun\nbegun\n');
    assert.deepEqual(await site.recordFiles(), []);
  });

  test('a build with after-restart resume starts over if its configuration has changed', async (t) => {
    const site = await OnInstanceSite.start(t);
    const left = await site.leaveBehind(RESUME, { stepsDone: 1 });
    const steps = ['touch /opt/first', 'touch /opt/second'];
    const image = await site.build(site.builder({ ...RESUME, steps }));
    assert.ok(left.isDestroyed);
    assert.ok(site.names(image).includes('./opt/first'));
  });

  test('a host key that differs from the one before the crash is rejected', async (t) => {
    const site = await killed(t);
    await site.changeEntry({
      hostKey: 'AAAAC3NzaC1lZDI1NTE5AAAAIKAWEtnthEZEIaDPLHV3UzLWhaDiSMlKSKDBwMtI29BX',
    });
    await assert.rejects(site.build(site.builder(RESUME)), withCode('host-key-changed'));
    assert.deepEqual(site.provider.instances, []);
  });

  test('a cleaned machine is powered off and captured without a login after a crash', async (t) => {
    const site = await OnInstanceSite.start(t, { makesSnapshots: true });
    await site.leaveBehind(RESUME, { phase: 'cleaned', stepsDone: 2 });
    const image = await site.build(site.builder(RESUME));
    assert.equal(site.provider.launched.length, 1);
    assert.equal(site.provider.instance.pushes, 1);
    assert.equal(image.snapshots?.length, 1);
  });

  test('a captured machine is captured again after a crash, and the first snapshot is deleted', async (t) => {
    const site = await OnInstanceSite.start(t, { makesSnapshots: true });
    const { snapshots } = site.provider;
    const instance = await site.leaveBehind(RESUME, { phase: 'stopped', stepsDone: 2 });
    await instance.stop();
    const { externalId } = await instance.capture({ imageId: IMAGE_ID });
    const image = await site.build(site.builder(RESUME));
    assert.deepEqual(
      [...snapshots.keys()],
      image.snapshots?.map((snapshot) => snapshot.externalId),
    );
    assert.ok(!snapshots.has(externalId ?? ''));
  });

  test('an instance left by a crash is kept for its job for a limited time', async (t) => {
    const site = await OnInstanceSite.start(t);
    await site.leaveBehind(RESUME, {});
    const start = performance.now();
    const now = t.mock.method(performance, 'now', () => start);
    const reaper = await site.reaper();
    undoAfter(t, () => reaper[Symbol.asyncDispose]());
    now.mock.mockImplementation(() => start + 59 * 60_000);
    await reaper.scan();
    assert.equal(site.provider.instances.length, 1);
    now.mock.mockImplementation(() => start + 60 * 60_000);
    await reaper.scan();
    assert.deepEqual(site.provider.instances, []);
    assert.deepEqual(await site.recordFiles(), []);
  });

  test('an instance left by a crash is kept for its job if the clock is set forward', async (t) => {
    const site = await OnInstanceSite.start(t);
    await site.leaveBehind(RESUME, {});
    t.mock.timers.enable({ apis: ['Date', 'setInterval'], now: Date.now() });
    const reaper = await site.reaper();
    undoAfter(t, () => reaper[Symbol.asyncDispose]());
    t.mock.timers.setTime(Date.now() + 86_400_000);
    await reaper.scan();
    assert.equal(site.provider.instances.length, 1);
  });

  test('a snapshot whose image was not published before a crash is deleted', async (t) => {
    const site = await OnInstanceSite.start(t, { makesSnapshots: true });
    const { snapshots } = site.provider;
    const instance = await site.leaveBehind({}, { phase: 'captured' });
    await instance.stop();
    await instance.capture({ imageId: IMAGE_ID });
    await look(t, site);
    assert.deepEqual([...snapshots], []);
  });
});

describe('a kept instance of a failed build', () => {
  test('a failed build’s kept instance is deleted when its time is over', async (t) => {
    const site = await OnInstanceSite.start(t);
    t.mock.timers.enable({ apis: ['Date', 'setInterval'], now: Date.now() });
    await site.leaveBehind({}, { keptUntil: inTenMinutes() });
    const reaper = await site.reaper();
    undoAfter(t, () => reaper[Symbol.asyncDispose]());
    assert.equal(site.provider.instances.length, 1);
    t.mock.timers.tick(590_000);
    await reaper.scan();
    assert.equal(site.provider.instances.length, 1);
    t.mock.timers.tick(310_000);
    await reaper.scan();
    assert.deepEqual(site.provider.instances, []);
    assert.deepEqual(await site.recordFiles(), []);
  });

  test('a failed build’s kept instance is deleted by the next build of the image', async (t) => {
    const site = await OnInstanceSite.start(t);
    const settings = { 'after-restart': 'resume' } as const;
    const left = await site.leaveBehind(settings, { keptUntil: inTenMinutes() });
    await site.build(site.builder(settings));
    assert.ok(left.isDestroyed);
    assert.deepEqual(site.provider.instances, []);
  });
});

test('a snapshot stays as long as its image exists', async (t) => {
  const site = await OnInstanceSite.start(t, { makesSnapshots: true });
  await site.build(site.builder());
  const reaper = await site.reaper();
  undoAfter(t, () => reaper[Symbol.asyncDispose]());
  assert.equal(site.provider.snapshots.size, 1);
  await site.repository.repository.delete(IMAGE_ID);
  await reaper.scan();
  assert.deepEqual([...site.provider.snapshots], []);
});

test('a published image’s snapshot stays after a crash, and the instance’s record is removed', async (t) => {
  const site = await OnInstanceSite.start(t, { makesSnapshots: true });
  await site.build(site.builder());
  await site.leaveBehind({}, { phase: 'captured' });
  await look(t, site);
  assert.deepEqual(site.provider.instances, []);
  assert.deepEqual(await site.recordFiles(), []);
  assert.equal(site.provider.snapshots.size, 1);
});

test('an instance’s record is written before its launch', async (t) => {
  let record = '';
  const site: OnInstanceSite = await OnInstanceSite.start(t, {
    onLaunch: async () => {
      const { directory } = new InstanceRecords(site.repository.repository);
      record = await readFile(join(directory, `${IMAGE_ID}.json`), 'utf8');
      throw new Error('no quota');
    },
  });
  await assert.rejects(site.build(site.builder()), /no quota/);
  const { provider, phase } = JSON.parse(record) as Record<string, unknown>;
  assert.deepEqual([provider, phase], ['sshds', 'launching']);
});

test('a running build’s instance stays', async (t) => {
  const site = await OnInstanceSite.start(t);
  let looked: Promise<void> | undefined;
  await site.build(site.builder(RESUME), {
    onLine: (line) => {
      if (line === 'waiting') {
        looked = look(t, site).then(() => writeFile(join(site.provider.instance.disk, 'opt/go'), ''));
      }
    },
  });
  await looked;
  assert.deepEqual(site.repository.logger.lines, []);
});

test('an instance without a record is deleted with a warning', async (t) => {
  const site = await OnInstanceSite.start(t);
  const request = { image: site.base, publicKey: 'none', port: 22 };
  for (const buildId of [IMAGE_ID, '../etc/passwd']) await site.provider.launch({ ...request, buildId });
  await look(t, site);
  assert.deepEqual(site.provider.instances, []);
  assert.equal(site.repository.logger.lines.length, 2);
  for (const line of site.repository.logger.lines)
    assert.match(line, /^warn deleted instance \S+ of provider sshds: /);
});

test('an instance that cannot be deleted does not delay the others', async (t) => {
  const site = await OnInstanceSite.start(t, { isDead: true });
  const request = { image: site.base, publicKey: 'none', port: 22 };
  const stuck = await site.provider.launch({ ...request, buildId: 'stuck' });
  await site.provider.launch({ ...request, buildId: 'other' });
  const asked = Promise.withResolvers<void>();
  const destroy = async ({ signal }: OperationOptions = {}): Promise<void> => {
    assert.ok(signal !== undefined);
    asked.resolve();
    await once(signal, 'abort');
    throw signal.reason;
  };
  t.mock.method(stuck, 'destroy', destroy, { times: 1 });
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const looked = site.reaper();
  await asked.promise;
  t.mock.timers.tick(120_000);
  const reaper = await looked;
  undoAfter(t, () => reaper[Symbol.asyncDispose]());
  assert.deepEqual(site.provider.instances, [stuck]);
  assert.match(
    site.repository.logger.lines[0] ?? '',
    /^error cannot check instance \S+ of provider sshds for orphans: .*took longer than 120 s/,
  );
  await reaper.scan();
  assert.deepEqual(site.provider.instances, []);
});

test('a reload of the providers waits for the running scan, which may use removed ones', async (t) => {
  const site = await OnInstanceSite.start(t);
  const reaper = await site.reaper();
  undoAfter(t, () => reaper[Symbol.asyncDispose]());
  const events: string[] = [];
  const listed = Promise.withResolvers<never[]>();
  t.mock.method(site.provider, 'list', () => listed.promise, { times: 1 });
  const scanned = reaper.scan().then(() => events.push('scanned'));
  const configured = reaper.configure([]).then(() => events.push('configured'));
  listed.resolve([]);
  await Promise.all([scanned, configured]);
  assert.deepEqual(events, ['scanned', 'configured']);
  await reaper.configure([]); // no scan is running
});

test('a failed scan for instances is logged, and the next scan succeeds', async (t) => {
  const site = await OnInstanceSite.start(t);
  const { directory } = new InstanceRecords(site.repository.repository);
  const reaper = await site.reaper();
  undoAfter(t, () => reaper[Symbol.asyncDispose]());
  await writeFile(directory, 'no directory');
  await reaper.scan();
  assert.match(
    site.repository.logger.lines[0] ?? '',
    /^error cannot check the records of instances for orphans: .*ENOTDIR/,
  );
  await rm(directory);
  await site.leaveBehind({}, {});
  await reaper.scan();
  assert.deepEqual(site.provider.instances, []);
});

test('the record of an instance in a provider that is no longer configured stays, and an error is logged', async (t) => {
  const site = await OnInstanceSite.start(t);
  await site.leaveBehind({}, { provider: 'gone' });
  await look(t, site);
  assert.equal(site.provider.instances.length, 1);
  assert.match(
    site.repository.logger.lines[0] ?? '',
    /^error cannot delete the instance of image \S+ in provider gone: /,
  );
  assert.ok(existsSync(join(new InstanceRecords(site.repository.repository).directory, `${IMAGE_ID}.json`)));
});
