import assert from 'node:assert/strict';
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { startBuilder } from '../fixtures/builder-process.ts';
import { runInProcess } from '../fixtures/command-in-process.ts';
import { runCommand } from '../fixtures/command-outcome.ts';
import { createFakeDib } from '../fixtures/fake-dib.ts';
import { type Gearmand, startGearmand } from '../fixtures/gearmand.ts';
import {
  createManagedSite,
  docsImage,
  endAfter,
  type ManagedSite,
  provider,
  spawnManager,
} from '../fixtures/managed-site.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

let server: Gearmand;

before(async () => {
  server = await startGearmand();
});
after(() => server.stop());

/** Each test uses its own name for the disk image, because all tests share a job server. */
async function newSite(t: Parameters<typeof createManagedSite>[0], name: string): Promise<ManagedSite> {
  return await createManagedSite(t, settingsOf(name), server.port);
}

function settingsOf(name: string): Record<string, unknown> {
  const images = [{ name: 'docs', diskimage: name }];
  return { diskimages: [docsImage({ name })], providers: [provider('east', { images })] };
}

const ELECTED = /nodepool\.manager: elected leader; /;

describe('manage', () => {
  it('a manager lets another process’s builder build and upload', async (t) => {
    const site = await newSite(t, 'separate');
    endAfter(t, await startBuilder(site.config));
    const manager = spawnManager(t, site.config);
    await manager.logged(new RegExp(`managing the builders at 127\\.0\\.0\\.1:${server.port}`));
    await manager.logged(/upload \S+ of separate-0000000001-\w+ to east is ready/);
    assert.equal((await site.uploaded('east')).length, 1);
    assert.equal(await manager.end('SIGTERM'), 0);
  });

  it('a manager waits until a builder is connected', async (t) => {
    const site = await newSite(t, 'waiting');
    const manager = spawnManager(t, site.config);
    await manager.logged(ELECTED);
    const [wait, ...others] = await site.list('plan');
    assert.deepEqual(others, []);
    assert.equal(wait?.what, 'wait');
    assert.match(wait.reason ?? '', /^no builder offers image-build:waiting; a build is due: /);
    endAfter(t, await startBuilder(site.config));
    await manager.logged(/build waiting-0000000001-\w+ is ready/);
  });

  it('a manager ends immediately at SIGTERM, and loses no running build', async (t) => {
    const site = await newSite(t, 'ended');
    const dib = await createFakeDib(site.directory);
    const command = join(dib.directory, 'disk-image-create');
    await site.configure({
      ...settingsOf('ended'),
      diskimages: [{ name: 'ended', elements: ['wait'], 'dib-cmd': command }],
    });
    const builder = endAfter(t, await startBuilder(site.config));
    const manager = spawnManager(t, site.config);
    await builder.logged(/nodepool\.image\.build\.ended: waiting/);
    assert.equal(await manager.end('SIGTERM'), 0);
    const [build] = await site.list('dib-image-list');
    assert.equal(build?.state, 'building');
    await dib.openGate();
    await builder.logged(/build \S+ of ended \(job .*\): done/);
    const successor = spawnManager(t, site.config);
    await successor.logged(/build ended-0000000001-\w+ is ready/);
    assert.equal((await site.list('dib-image-list')).length, 1);
  });

  it('a manager reloads the configuration at SIGHUP, and an invalid one changes nothing', async (t) => {
    const site = await newSite(t, 'reloaded');
    const builder = endAfter(t, await startBuilder(site.config));
    const manager = spawnManager(t, site.config);
    await manager.logged(/upload \S+ of reloaded-0000000001-\w+ to east is ready/);
    await site.configure({ ...settingsOf('reloaded'), diskimages: 5 });
    manager.child.kill('SIGHUP');
    await manager.logged(/the configuration is unchanged: .*nodepool\.yaml:1:\d+: diskimages must be a list/);

    await site.configure({ diskimages: [], providers: [provider('east', { images: [] })] });
    manager.child.kill('SIGHUP');
    builder.child.kill('SIGHUP');
    await manager.logged(/deleted build reloaded-0000000001-/);
    await waitUntil('an empty provider', async () => (await site.uploaded('east')).length === 0);
    assert.deepEqual(await site.built(), []);
  });

  it('a manager reloads the configuration when the file changes', async (t) => {
    const site = await newSite(t, 'watched');
    endAfter(t, await startBuilder(site.config));
    const manager = spawnManager(t, site.config);
    await manager.logged(/build watched-0000000001-\w+ is ready/);
    const options = { tree: join(import.meta.dirname, '../docs') };
    await site.configure({
      ...settingsOf('watched'),
      diskimages: [docsImage({ name: 'watched', options })],
    });
    await manager.logged(/build watched-\d+-\w+: its configuration has changed since watched-/);
  });

  it('a manager stands by while another is the leader, and takes over when it is killed', async (t) => {
    const site = await newSite(t, 'stand-by');
    endAfter(t, await startBuilder(site.config));
    const leader = spawnManager(t, site.config);
    await leader.logged(ELECTED);
    const standby = spawnManager(t, site.config);
    await standby.logged(/nodepool\.manager: another manager is the leader; standing by/);
    await leader.logged(/upload \S+ of stand-by-0000000001-\w+ to east is ready/);
    assert.ok(!standby.log.some((line) => ELECTED.test(line)));
    await leader.end('SIGKILL');
    await standby.logged(ELECTED);
    await runInProcess('rebuild', 'stand-by', '-c', site.config);
    await standby.logged(/build stand-by-\d+-\w+: it was requested/);
  });

  it('the option --dry-run of manage prints the plan and changes nothing', async (t) => {
    const site = await newSite(t, 'dry');
    endAfter(t, await startBuilder(site.config));
    const { code, stdout, stderr } = await runCommand('manage', '--dry-run', '-c', site.config);
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(stdout, /^WHAT +SUBJECT +WHEN +REASON\nbuild +dry +now +its first ready build\n$/);
    await assert.rejects(access(site.store), { code: 'ENOENT' });
    assert.deepEqual(await site.built(), []);
  });
});

describe('the password in the URL of a store', () => {
  const settings = {
    manager: { store: 'postgresql://nodepool:hunter2@127.0.0.1:1/nodepool?sslmode=disable' },
  };

  for (const command of [['manage'], ['plan'], ['image-list'], ['-d', '--all-in-one']]) {
    it(`the command ${command.join(' ')} does not show the store’s password when the database cannot be reached`, async (t) => {
      const site = await createManagedSite(t, settings);
      const { code, stdout, stderr } = await runCommand(...command, '-c', site.config);
      assert.equal(code, 5);
      assert.match(
        stderr,
        /^nodepool-builder: PostgreSQL database "nodepool" at 127\.0\.0\.1:1 cannot be used: .*; check that it runs/m,
      );
      assert.doesNotMatch(stdout + stderr, /hunter2/);
    });

    it(`the command ${command.join(' ')} does not show the password in a URL of another database`, async (t) => {
      const site = await createManagedSite(t, { manager: { store: 'mysql://nodepool:hunter2@db/nodepool' } });
      const { code, stdout, stderr } = await runCommand(...command, '-c', site.config);
      assert.equal(code, 1);
      assert.match(stderr, /^\/.*:1:\d+: manager\.store is a URL, but not of a PostgreSQL database; /);
      assert.doesNotMatch(stdout + stderr, /hunter2/);
    });
  }
});
