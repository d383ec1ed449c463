import assert from 'node:assert/strict';
import { mkdir, readdir, utimes, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { removeUnused, STATE_RETENTION, StateDirectories } from '../../src/repository/state-directory.ts';

const ON = new AbortController().signal;

test('a state directory is used by one build at a time, and the next one finds its files', async (t) => {
  const states = new StateDirectories(await temporaryDirectory(t));
  const [first, second, other] = [states.of('debian'), states.of('debian'), states.of('fedora')];
  const path = await first.take(ON);
  await writeFile(join(path, 'begun'), 'content');
  const waiting = second.take(ON);
  await other.take(ON);
  assert.equal(await Promise.race([waiting, other.take(ON).then(() => 'still waiting')]), 'still waiting');
  first.release();
  assert.equal(await waiting, path);
  assert.deepEqual(await readdir(path), ['begun']);
});

test('an aborted wait for a state directory does not block later builds', async (t) => {
  const states = new StateDirectories(await temporaryDirectory(t));
  const [first, second, third] = [states.of('debian'), states.of('debian'), states.of('debian')];
  await first.take(ON);
  const abort = new AbortController();
  const waiting = second.take(abort.signal);
  abort.abort(new Error('enough'));
  await assert.rejects(waiting, /enough/);
  second.release();
  first.release();
  await third.take(ON);
});

test('a state directory is cleared only by the build that has taken it', async (t) => {
  const parent = await temporaryDirectory(t);
  const states = new StateDirectories(parent);
  const taken = states.of('debian');
  await writeFile(join(await taken.take(ON), 'begun'), 'content');
  await states.of('debian').clear();
  assert.deepEqual(await readdir(parent), ['debian']);
  await taken.clear();
  assert.deepEqual(await readdir(parent), []);
});

test('no image name leads out of the state directories’ parent', async (t) => {
  const parent = await temporaryDirectory(t);
  const states = new StateDirectories(parent);
  for (const name of ['..', '.', '../a', 'a/b', '.hidden']) {
    const path = await states.of(name).take(ON);
    assert.equal(dirname(path), parent);
    assert.ok(!basename(path).startsWith('.'), path);
  }
  assert.equal((await readdir(parent)).length, 5);
});

test('state directories that were unused for a week are removed', async (t) => {
  const parent = await temporaryDirectory(t);
  const [old, recent] = [join(parent, 'old'), join(parent, 'recent')];
  for (const [path, days] of [
    [old, 8],
    [recent, 6],
  ] as const) {
    await mkdir(path);
    const time = new Date(Date.now() - days * 24 * 3_600_000);
    await utimes(path, time, time);
  }
  await removeUnused(parent, STATE_RETENTION);
  assert.deepEqual(await readdir(parent), ['recent']);
  await removeUnused(join(parent, 'never-used'), STATE_RETENTION);
});
