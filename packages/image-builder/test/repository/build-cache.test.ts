import assert from 'node:assert/strict';
import { mkdir, readdir, stat, utimes, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { type BuildCache, BuildCaches, CACHE_RETENTION } from '../../src/repository/build-cache.ts';
import { removeUnused } from '../../src/repository/state-directory.ts';

const MEBIBYTE = 2 ** 20;
const AMPLE = 100 * MEBIBYTE;
const DAY = 24 * 3600;

async function take(caches: BuildCaches, name = 'debian', limit = AMPLE): Promise<BuildCache> {
  return (await caches.take(name, limit)) ?? assert.fail('the cache is in use');
}

/** Writes a file that is used some minutes from now, after its ctime, which cannot be set. */
async function write(path: string, minutes = 1): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, Buffer.alloc(MEBIBYTE, 'x'));
  // Not now, because this process’s clock may be a millisecond behind the file system’s.
  const time = Date.now() / 1000 + minutes * 60;
  await utimes(path, time, time);
}

test('an image’s next build finds the last build’s downloads, even after a restart', async (t) => {
  const parent = join(await temporaryDirectory(t), 'cache');
  const first = await take(new BuildCaches(parent));
  await write(join(first.directory, 'apt', 'debian', 'hello.deb'));
  await first.release(true);
  const second = await take(new BuildCaches(parent));
  assert.equal(second.directory, first.directory);
  assert.deepEqual(await readdir(join(second.directory, 'apt', 'debian')), ['hello.deb']);
});

test('a download cache is used by one build at a time, and other images have their own', async (t) => {
  const caches = new BuildCaches(await temporaryDirectory(t));
  const first = await take(caches);
  assert.equal(await caches.take('debian', AMPLE), undefined);
  assert.notEqual((await take(caches, 'fedora')).directory, first.directory);
  await first.release(true);
  await take(caches);
});

test('a download cache removes the least recently used files above the limit', async (t) => {
  const caches = new BuildCaches(await temporaryDirectory(t));
  const { directory, release } = await take(caches, 'debian', 3.5 * MEBIBYTE);
  for (const [index, name] of ['b', 'c', 'd', 'a', 'e'].entries()) {
    await write(join(directory, 'apt', name), index + 1);
  }
  await release(true);
  assert.deepEqual((await readdir(join(directory, 'apt'))).toSorted(), ['a', 'd', 'e']);
});

test('a download cache removes a Git repository as a whole, or not at all', async (t) => {
  const caches = new BuildCaches(await temporaryDirectory(t));
  const { directory, release } = await take(caches, 'debian', 2.5 * MEBIBYTE);
  const sources = join(directory, 'source-repositories');
  for (const [index, name] of ['old', 'new'].entries()) {
    await write(join(sources, name, '.git', 'pack'), index + 1);
    await write(join(sources, name, '.git', 'HEAD'), index + 2);
  }
  await release(true);
  assert.deepEqual(await readdir(sources), ['new']);
  assert.deepEqual((await readdir(join(sources, 'new', '.git'))).toSorted(), ['HEAD', 'pack']);
});

test('a failed build leaves no incomplete file in the download cache', async (t) => {
  const caches = new BuildCaches(await temporaryDirectory(t));
  const { directory, release } = await take(caches);
  await write(join(directory, 'debootstrap-debian.tar.gz'));
  const base = join(directory, 'base.qcow2');
  await write(base);
  await utimes(base, 0, 0);
  await write(join(directory, 'apt', 'hello.deb'));
  await write(join(directory, 'source-repositories', 'nova.tmp', '.git', 'pack'));
  await release(false);
  assert.deepEqual((await readdir(directory)).toSorted(), ['apt', 'base.qcow2', 'source-repositories']);
  assert.deepEqual(await readdir(join(directory, 'apt')), ['hello.deb']);
  assert.deepEqual(await readdir(join(directory, 'source-repositories')), []);
});

test('a build that a crash ended leaves no incomplete file in the download cache', async (t) => {
  const parent = await temporaryDirectory(t);
  const { directory } = await take(new BuildCaches(parent));
  await write(join(directory, 'debootstrap-debian.tar.gz'));
  await take(new BuildCaches(parent));
  assert.deepEqual(await readdir(directory), ['.in-use']);
});

test('no image name leads out of the download cache’s parent directory, or needs quotes in a shell', async (t) => {
  const parent = await temporaryDirectory(t);
  const caches = new BuildCaches(parent);
  const long = 'n'.repeat(400);
  for (const name of ['..', '../a', '.hidden', "it's (a) *~!", 'a b', long, `${long}o`]) {
    const { directory } = await take(caches, name);
    assert.equal(dirname(directory), parent);
    assert.match(basename(directory), /^[\w%-][\w.%-]*$/);
  }
});

test('a download cache that no build has used for a month is removed', async (t) => {
  const parent = await temporaryDirectory(t);
  const caches = new BuildCaches(parent);
  for (const name of ['old', 'recent']) await (await take(caches, name)).release(true);
  const then = Date.now() / 1000 - 31 * DAY;
  await utimes(join(parent, 'old'), then, then);
  await removeUnused(parent, CACHE_RETENTION);
  assert.deepEqual(await readdir(parent), ['recent']);
  assert.ok((await stat(join(parent, 'recent'))).isDirectory());
  await removeUnused(join(parent, 'missing'), CACHE_RETENTION);
});

test('files in a download cache whose names are not UTF-8 count, and are removed like others', async (t) => {
  const caches = new BuildCaches(await temporaryDirectory(t));
  const { directory, release } = await take(caches, 'debian', 1.5 * MEBIBYTE);
  const inLatin1 = Buffer.concat([Buffer.from(`${directory}/caf`), Buffer.from([0xe9])]);
  await writeFile(inLatin1, Buffer.alloc(MEBIBYTE, 'x'));
  await write(join(directory, 'caf\uFFFD'), 5);
  await release(true);
  assert.deepEqual(await readdir(directory, 'buffer'), [Buffer.from('caf\uFFFD')]);
});
