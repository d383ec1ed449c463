import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import type { OnInstance } from '../../src/index.ts';
import type { InstanceEntry } from '../../src/on-instance/ledger.ts';
import { withCode } from '../with-code.ts';
import { IMAGE_ID, OnInstanceSite } from './on-instance-site.ts';
import type { SshdInstancesOptions } from './sshd-instances.ts';

const RESUME: Partial<OnInstance> = {
  afterRestart: 'resume',
  steps: [
    { run: 'echo begun >> /opt/first' },
    { run: 'echo begun >> /opt/second; echo waiting; while [ ! -e /opt/go ]; do sleep 0.05; done' },
  ],
};

const ENTRY: InstanceEntry = {
  imageId: IMAGE_ID,
  imageName: 'custom',
  provider: 'sshds',
  phase: 'running',
  stepsDone: 0,
  since: '2026-01-01T00:00:00.000Z',
  afterRestart: 'destroy',
  recipe: '',
};

/** A build that was killed in its second step, as the next process finds it. */
async function killed(
  t: TestContext,
  settings: Partial<OnInstance>,
  options: SshdInstancesOptions = {},
): Promise<OnInstanceSite> {
  const site = await OnInstanceSite.start(t, options);
  const waiting = Promise.withResolvers<void>();
  const abort = new AbortController();
  const build = site.build(site.builder(settings), {
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

describe('after a crash', () => {
  test('the instance is ended when the next process starts, by default', async (t) => {
    const site = await killed(t, { ...RESUME, afterRestart: 'destroy' });
    await look(t, site);
    assert.deepEqual(site.provider.instances, []);
    assert.deepEqual(await site.remembered(), []);
    assert.deepEqual(site.repository.logger.lines, [
      `info image ${IMAGE_ID}: what an earlier build of it left on instances is gone`,
    ]);
  });

  test('the instance is ended when the job comes again, by default', async (t) => {
    const site = await killed(t, { ...RESUME, afterRestart: 'destroy' });
    const [left] = site.provider.instances;
    await site.build(site.builder());
    assert.ok(left?.isDestroyed);
    assert.deepEqual(site.provider.instances, []);
  });

  test('the build goes on behind the last step that ended, if that is wanted; what was begun is ended', async (t) => {
    const site = await killed(t, RESUME);
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
    const site = await killed(t, RESUME);
    const [left] = site.provider.instances;
    const image = await site.build(site.builder({ ...RESUME, steps: [{ run: 'touch /opt/other' }] }));
    assert.ok(left?.isDestroyed);
    assert.ok(!site.names(image).includes('./opt/first'));
  });

  test('another host key than before the crash is refused', async (t) => {
    const site = await killed(t, RESUME);
    await site.changeEntry({
      hostKey: 'AAAAC3NzaC1lZDI1NTE5AAAAIKAWEtnthEZEIaDPLHV3UzLWhaDiSMlKSKDBwMtI29BX',
    });
    await assert.rejects(site.build(site.builder(RESUME)), withCode('host-key-changed'));
    assert.deepEqual(site.provider.instances, []);
  });

  test('a machine that is clean is powered off and captured without a login', async (t) => {
    const site = await killed(t, RESUME, { makesSnapshots: true });
    await site.changeEntry({ phase: 'cleaned' });
    await site.provider.instance.restart(() =>
      writeFile(join(site.provider.instance.disk, 'root/.ssh/authorized_keys'), ''),
    );
    const image = await site.build(site.builder(RESUME));
    assert.equal(site.provider.launched.length, 1);
    assert.equal(site.provider.instance.pushes, 1);
    assert.equal(image.snapshots?.length, 1);
  });

  test('a machine that was captured is captured again, and the first image goes', async (t) => {
    const site = await killed(t, RESUME, { makesSnapshots: true });
    const { instance, snapshots } = site.provider;
    await instance.stop();
    const { externalId } = await instance.capture({ imageId: IMAGE_ID });
    await site.changeEntry({ phase: 'stopped' });
    const image = await site.build(site.builder(RESUME));
    assert.deepEqual(
      [...snapshots.keys()],
      image.snapshots?.map((snapshot) => snapshot.externalId),
    );
    assert.ok(!snapshots.has(externalId ?? ''));
  });

  test('the job is waited for, but not for ever', async (t) => {
    const site = await killed(t, RESUME);
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
    const site = await killed(t, { ...RESUME, afterRestart: 'destroy' }, { makesSnapshots: true });
    const { instance, snapshots } = site.provider;
    await instance.stop();
    await instance.capture({ imageId: IMAGE_ID });
    await look(t, site);
    assert.deepEqual([...snapshots], []);
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
  const claim = site.repository.repository.instances.tryClaim(IMAGE_ID);
  await claim?.write({ ...ENTRY, phase: 'captured' });
  claim?.release();
  await look(t, site);
  assert.deepEqual(await site.remembered(), []);
  assert.equal(site.provider.snapshots.size, 1);
});

test('what is to be launched is remembered before', async (t) => {
  let remembered = '';
  const site: OnInstanceSite = await OnInstanceSite.start(t, {
    onLaunch: async () => {
      const { directory } = site.repository.repository.instances;
      remembered = await readFile(join(directory, `${IMAGE_ID}.json`), 'utf8');
    },
  });
  await site.build(site.builder());
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

test('what lies in a provider that is not configured any more is told of, and remembered', async (t) => {
  const site = await killed(t, { ...RESUME, afterRestart: 'destroy' });
  await site.changeEntry({ provider: 'gone' });
  await look(t, site);
  assert.equal(site.provider.instances.length, 1);
  assert.match(
    site.repository.logger.lines[0] ?? '',
    /^error the instance of image \S+ in provider gone cannot be ended/,
  );
  assert.ok(existsSync(join(site.repository.repository.instances.directory, `${IMAGE_ID}.json`)));
});
