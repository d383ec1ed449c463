import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { withCode } from '../../../../test/fixtures/with-code.ts';
import { DirectoryLock } from '../../src/repository/directory-lock.ts';
import { Layout } from '../../src/repository/layout.ts';
import { keeperOf } from '../lock-keeper.ts';

async function layoutOf(t: TestContext): Promise<Layout> {
  const layout = new Layout(await temporaryDirectory(t));
  await layout.create();
  return layout;
}

test('a second owner of the images directory is rejected with the name of the first', async (t) => {
  const layout = await layoutOf(t);
  const lock = await DirectoryLock.take(layout);
  t.after(() => lock.release());
  const message = new RegExp(`in use by process ${process.pid} on host ${hostname()}`);
  await assert.rejects(DirectoryLock.take(layout), withCode('directory-locked', message));
});

test('a released lock of the images directory can be taken again', async (t) => {
  const layout = await layoutOf(t);
  await (await DirectoryLock.take(layout)).release();
  await (await DirectoryLock.take(layout)).release();
  await assert.rejects(readFile(layout.owner), { code: 'ENOENT' });
});

test('a killed owner no longer holds the lock of the images directory', async (t) => {
  const layout = await layoutOf(t);
  const program = `
    import { DirectoryLock } from ${JSON.stringify(import.meta.resolve('../../src/repository/directory-lock.ts'))};
    import { Layout } from ${JSON.stringify(import.meta.resolve('../../src/repository/layout.ts'))};
    await DirectoryLock.take(new Layout(process.argv[1]));
    console.log('taken');
  `;
  const args = ['--input-type=module', '--eval', program, layout.root];
  const owner = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(owner.stdout, 'data');
  await assert.rejects(
    DirectoryLock.take(layout),
    withCode('directory-locked', new RegExp(`process ${owner.pid} `)),
  );
  owner.kill('SIGKILL');
  await once(owner, 'exit');
  await (await DirectoryLock.take(layout)).release();
});

test('the lock’s keeper ignores signals to the whole terminal or service', async (t) => {
  const layout = await layoutOf(t);
  const lock = await DirectoryLock.take(layout);
  t.after(() => lock.release());
  const keeper = keeperOf(layout.lock);
  assert.ok(keeper);
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.kill(keeper, signal);
  const session = (await readFile(`/proc/${keeper}/stat`, 'utf8')).split(' ')[5];
  assert.equal(Number(session), keeper, 'it leads a session of its own');
  await assert.rejects(DirectoryLock.take(layout), withCode('directory-locked'));
});

test('the loss of the lock of the images directory is reported', async (t) => {
  const layout = await layoutOf(t);
  const lock = await DirectoryLock.take(layout);
  const lost = new Promise<void>((resolve) => lock.onLost(resolve));
  const keeper = keeperOf(layout.lock);
  assert.ok(keeper);
  process.kill(keeper, 'SIGKILL');
  await lost;
  await lock.release();
});

test('an unusable lock file is reported as an unusable directory', async (t) => {
  const layout = new Layout(join(await temporaryDirectory(t), 'missing'));
  await assert.rejects(
    DirectoryLock.take(layout),
    withCode('directory-not-usable', /cannot be locked: flock: /),
  );
});

test('a lock whose owner cannot be recorded is released', async (t) => {
  const layout = await layoutOf(t);
  await mkdir(join(layout.owner, 'entry'), { recursive: true });
  await assert.rejects(DirectoryLock.take(layout), { code: 'EISDIR' });
  assert.equal(keeperOf(layout.lock), undefined);
  await rm(layout.owner, { recursive: true });
  await (await DirectoryLock.take(layout)).release();
});
