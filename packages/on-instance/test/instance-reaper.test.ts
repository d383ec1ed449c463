import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import type { OperationOptions } from '@nodepool-builder/image-builder';
import { undoAfter } from '../../../test/fixtures/undo-after.ts';
import { withCode } from '../../image-builder/test/with-code.ts';
import type { OnInstance } from '../src/index.ts';
import { InstanceRecords } from '../src/instance-records.ts';
import { IMAGE_ID, OnInstanceSite } from './on-instance-site.ts';

const RESUME: Partial<OnInstance> = {
  afterRestart: 'resume',
  steps: [
    { run: 'echo begun >> /opt/first' },
    { run: 'echo begun >> /opt/second; echo waiting; while [ ! -e /opt/go ]; do sleep 0.05; done' },
  ],
};

/** A build that was killed in its second step, as the next process finds it. */
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
  const keeper = await site.keeper();
  undoAfter(t, () => keeper.close());
}

function inTenMinutes(): string {
  return new Date(Date.now() + 600_000).toISOString();
}

describe('after a crash', () => {
  test('the instance is ended when the next process starts, by default', async (t) => {
    const site = await OnInstanceSite.start(t);
    await site.leaveBehind({}, {});
    await look(t, site);
    assert.deepEqual(site.provider.instances, []);
    assert.deepEqual(await site.remembered(), []);
    assert.deepEqual(site.repository.logger.lines, [
      `info image ${IMAGE_ID}: what an earlier build of it left on instances is gone`,
    ]);
  });

  test('the instance is ended when the job comes again, by default', async (t) => {
    const site = await OnInstanceSite.start(t);
    const left = await site.leaveBehind({}, {});
    await site.build(site.builder());
    assert.ok(left.isDestroyed);
    assert.deepEqual(site.provider.instances, []);
  });

  test('the build goes on behind the last step that ended, if that is wanted; what was begun is ended', async (t) => {
    const site = await killed(t);
    await look(t, site);
    const { instance } = site.provider;
    await writeFile(join(instance.disk, 'opt/go'), '');
    const image = await site.build(site.builder(RESUME));
    assert.equal(site.provider.launched.length, 1);
    assert.equal(site.read(image, 'opt/first'), 'begun\n');
    assert.equal(site.read(image, 'opt/second'), 'begun\nbegun\n');
    assert.deepEqual(await site.remembered(), []);
  });

  test('the build begins anew if it is to be made in another way now', async (t) => {
    const site = await OnInstanceSite.start(t);
    const left = await site.leaveBehind(RESUME, { stepsDone: 1 });
    const steps = [{ run: 'touch /opt/first' }, { run: 'touch /opt/second' }];
    const image = await site.build(site.builder({ ...RESUME, steps }));
    assert.ok(left.isDestroyed);
    assert.ok(site.names(image).includes('./opt/first'));
  });

  test('another host key than before the crash is refused', async (t) => {
    const site = await killed(t);
    await site.changeEntry({
      hostKey: 'AAAAC3NzaC1lZDI1NTE5AAAAIKAWEtnthEZEIaDPLHV3UzLWhaDiSMlKSKDBwMtI29BX',
    });
    await assert.rejects(site.build(site.builder(RESUME)), withCode('host-key-changed'));
    assert.deepEqual(site.provider.instances, []);
  });

  test('a machine that is clean is powered off and captured without a login', async (t) => {
    const site = await OnInstanceSite.start(t, { makesSnapshots: true });
    await site.leaveBehind(RESUME, { phase: 'cleaned', stepsDone: 2 });
    const image = await site.build(site.builder(RESUME));
    assert.equal(site.provider.launched.length, 1);
    assert.equal(site.provider.instance.pushes, 1);
    assert.equal(image.snapshots?.length, 1);
  });

  test('a machine that was captured is captured again, and the first image goes', async (t) => {
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

  test('the job is waited for, but not for ever', async (t) => {
    const site = await OnInstanceSite.start(t);
    await site.leaveBehind(RESUME, {});
    t.mock.timers.enable({ apis: ['Date', 'setInterval'], now: Date.now() });
    const keeper = await site.keeper();
    undoAfter(t, () => keeper.close());
    t.mock.timers.tick(59 * 60_000);
    await keeper.look();
    assert.equal(site.provider.instances.length, 1);
    t.mock.timers.tick(60_000);
    await keeper.look();
    assert.deepEqual(site.provider.instances, []);
    assert.deepEqual(await site.remembered(), []);
  });

  test('a snapshot goes whose image was not published', async (t) => {
    const site = await OnInstanceSite.start(t, { makesSnapshots: true });
    const { snapshots } = site.provider;
    const instance = await site.leaveBehind({}, { phase: 'captured' });
    await instance.stop();
    await instance.capture({ imageId: IMAGE_ID });
    await look(t, site);
    assert.deepEqual([...snapshots], []);
  });
});

describe('the instance of a failed build that is kept', () => {
  test('ends when its time is over', async (t) => {
    const site = await OnInstanceSite.start(t);
    t.mock.timers.enable({ apis: ['Date', 'setInterval'], now: Date.now() });
    await site.leaveBehind({}, { keptUntil: inTenMinutes() });
    const keeper = await site.keeper();
    undoAfter(t, () => keeper.close());
    assert.equal(site.provider.instances.length, 1);
    t.mock.timers.tick(590_000);
    await keeper.look();
    assert.equal(site.provider.instances.length, 1);
    t.mock.timers.tick(310_000);
    await keeper.look();
    assert.deepEqual(site.provider.instances, []);
    assert.deepEqual(await site.remembered(), []);
  });

  test('gives way to another try at the same image', async (t) => {
    const site = await OnInstanceSite.start(t);
    const settings = { afterRestart: 'resume' } as const;
    const left = await site.leaveBehind(settings, { keptUntil: inTenMinutes() });
    await site.build(site.builder(settings));
    assert.ok(left.isDestroyed);
    assert.deepEqual(site.provider.instances, []);
  });
});

test('a snapshot stays as long as its image is there', async (t) => {
  const site = await OnInstanceSite.start(t, { makesSnapshots: true });
  await site.build(site.builder());
  const keeper = await site.keeper();
  undoAfter(t, () => keeper.close());
  assert.equal(site.provider.snapshots.size, 1);
  await site.repository.repository.delete(IMAGE_ID);
  await keeper.look();
  assert.deepEqual([...site.provider.snapshots], []);
});

test('what a build that was killed remembers goes, and the snapshot stays, if its image was published', async (t) => {
  const site = await OnInstanceSite.start(t, { makesSnapshots: true });
  await site.build(site.builder());
  await site.leaveBehind({}, { phase: 'captured' });
  await look(t, site);
  assert.deepEqual(site.provider.instances, []);
  assert.deepEqual(await site.remembered(), []);
  assert.equal(site.provider.snapshots.size, 1);
});

test('what is to be launched is remembered before', async (t) => {
  let remembered = '';
  const site: OnInstanceSite = await OnInstanceSite.start(t, {
    onLaunch: async () => {
      const { directory } = new InstanceRecords(site.repository.repository);
      remembered = await readFile(join(directory, `${IMAGE_ID}.json`), 'utf8');
      throw new Error('no quota');
    },
  });
  await assert.rejects(site.build(site.builder()), /no quota/);
  const { provider, phase } = JSON.parse(remembered) as Record<string, unknown>;
  assert.deepEqual([provider, phase], ['sshds', 'launching']);
});

test('the instance of a build that is under way is left alone', async (t) => {
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

test('an instance that no build remembers is ended, and told of', async (t) => {
  const site = await OnInstanceSite.start(t);
  const request = { image: site.base, publicKey: 'none', port: 22 };
  for (const buildId of [IMAGE_ID, '../etc/passwd']) await site.provider.launch({ ...request, buildId });
  await look(t, site);
  assert.deepEqual(site.provider.instances, []);
  assert.equal(site.repository.logger.lines.length, 2);
  for (const line of site.repository.logger.lines)
    assert.match(line, /^warn instance \S+ of provider sshds was for /);
});

test('an instance that does not go holds up no other', async (t) => {
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
  const looked = site.keeper();
  await asked.promise;
  t.mock.timers.tick(120_000);
  const keeper = await looked;
  undoAfter(t, () => keeper.close());
  assert.deepEqual(site.provider.instances, [stuck]);
  assert.match(
    site.repository.logger.lines[0] ?? '',
    /^error instance \S+ of provider sshds could not be looked after: .*took longer than 120 s/,
  );
  await keeper.look();
  assert.deepEqual(site.provider.instances, []);
});

test('a look that fails is told, and another follows', async (t) => {
  const site = await OnInstanceSite.start(t);
  const { directory } = new InstanceRecords(site.repository.repository);
  await writeFile(directory, 'no directory');
  const keeper = await site.keeper();
  undoAfter(t, () => keeper.close());
  assert.match(
    site.repository.logger.lines[0] ?? '',
    /^error what is left on instances could not be looked after: .*ENOTDIR/,
  );
  await rm(directory);
  await site.leaveBehind({}, {});
  await keeper.look();
  assert.deepEqual(site.provider.instances, []);
});

test('what lies in a provider that is not configured any more is told of, and remembered', async (t) => {
  const site = await OnInstanceSite.start(t);
  await site.leaveBehind({}, { provider: 'gone' });
  await look(t, site);
  assert.equal(site.provider.instances.length, 1);
  assert.match(
    site.repository.logger.lines[0] ?? '',
    /^error the instance of image \S+ in provider gone cannot be ended/,
  );
  assert.ok(existsSync(join(new InstanceRecords(site.repository.repository).directory, `${IMAGE_ID}.json`)));
});
