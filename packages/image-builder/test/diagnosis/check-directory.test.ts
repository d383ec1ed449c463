// Not a unit test: it mounts file systems.
import assert from 'node:assert/strict';
import { mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { mountTmpfs, temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { checkDirectory, checkFreeSpace, checkImagesDirectory } from '../../src/diagnosis/check-directory.ts';
import type { CheckResult } from '../../src/diagnosis/check-result.ts';
import { ImageRepository } from '../../src/repository.ts';

const NEVER = new AbortController().signal;

function states(results: readonly CheckResult[]): readonly string[] {
  return results.map(({ status }) => status);
}

describe('a directory', () => {
  test('the check of a usable directory leaves it unchanged', async (t) => {
    const directory = await temporaryDirectory(t);
    const before = await stat(directory);
    const results = await Array.fromAsync(checkDirectory('images-dir', directory));
    assert.deepEqual(states(results), ['ok', 'ok']);
    assert.deepEqual([(await stat(directory)).mtimeMs, await readdir(directory)], [before.mtimeMs, []]);
  });

  test('the check of a directory that is missing, a file, or read-only reports a problem with a remedy', async (t) => {
    const directory = await temporaryDirectory(t);
    const file = join(directory, 'file');
    await writeFile(file, '');
    const readOnly = await mountTmpfs(t, 'ro');
    const messages: readonly (readonly [path: string, message: RegExp])[] = [
      [join(directory, 'none'), /^does not exist$/],
      [file, /^is not a directory$/],
      [readOnly, /read-only/],
    ];
    for (const [path, message] of messages) {
      const [result, ...others] = await Array.fromAsync(checkDirectory('images-dir', path));
      assert.equal(result?.status, 'problem');
      assert.match(result.message, message);
      assert.ok(result.remedy);
      assert.deepEqual(others, []);
    }
  });
});

describe('images-dir', () => {
  test('the check of images-dir names the builder that uses it', async (t) => {
    const directory = await temporaryDirectory(t);
    const lock = async (): Promise<CheckResult | undefined> =>
      (await Array.fromAsync(checkImagesDirectory(directory, NEVER))).at(-1);
    assert.equal((await lock())?.message, 'no builder runs here');
    const repository = await ImageRepository.open(directory);
    const held = await lock();
    await repository.close();
    assert.equal(held?.status, 'ok');
    assert.match(held.message, new RegExp(`^a builder runs here: process ${process.pid} on host `));
    assert.equal((await lock())?.message, 'no builder runs here');
  });

  test('the check of images-dir fails if its staging directory is on another file system', async (t) => {
    const staging = '.nodepool-builder/staging';
    const directory = await temporaryDirectory(t);
    await mkdir(join(directory, staging), { recursive: true });
    const good = await Array.fromAsync(checkImagesDirectory(directory, NEVER));
    assert.deepEqual(new Set(states(good)), new Set(['ok']));
    const { execFileSync } = await import('node:child_process');
    execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', join(directory, staging)]);
    const results = await Array.fromAsync(checkImagesDirectory(directory, NEVER));
    const problem = results.find(({ status }) => status === 'problem');
    assert.match(problem?.message ?? '', /is on another file system/);
  });
});

describe('free space', () => {
  test('the check of free space compares it with what is needed', async (t) => {
    const directory = await mountTmpfs(t, 'size=16m');
    const status = async (needed?: number): Promise<string> =>
      (await checkFreeSpace('images-dir', directory, needed, 'the largest image')).status;
    assert.equal(await status(4 * 2 ** 20), 'ok');
    assert.equal(await status(12 * 2 ** 20), 'warning');
    assert.equal(await status(20 * 2 ** 20), 'problem');
    assert.equal(await status(), 'warning', 'little is a warning, even if nothing is known');
  });

  test('the check of free space in a directory that does not exist yet uses its parent', async (t) => {
    const directory = await mountTmpfs(t, 'size=16m');
    const { message } = await checkFreeSpace('build-log-dir', join(directory, 'a/b'), 2 ** 20, 'a log');
    assert.match(message, /^[\d.]+ [KMG]iB are free/);
  });

  test('the check of free space reports that no inodes are left', async (t) => {
    const directory = await mountTmpfs(t, 'nr_inodes=2');
    await writeFile(join(directory, 'last'), '');
    const { status, message } = await checkFreeSpace('images-dir', directory, undefined, '');
    assert.deepEqual([status, message], ['problem', 'the file system has no free inode']);
  });
});
