import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { grandchildrenOf, newFiles } from '../../../scripts/fresh-machine/left-behind.ts';
import { undoAfter } from '../../fixtures/undo-after.ts';
import { waitUntil } from '../../fixtures/wait-until.ts';

test('new files and empty directories that commands left are found, except below ignored paths', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'left-behind-'));
  undoAfter(t, () => rm(root, { recursive: true, force: true }));
  const write = async (path: string): Promise<void> => {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), '');
  };
  await write('etc/old');
  await write('etc/changed');
  const { ctimeMs } = await stat(join(root, 'etc/changed'));
  await waitUntil('the clock of the file system to advance', async () => {
    await write('mark');
    return (await stat(join(root, 'mark'))).ctimeMs > ctimeMs;
  });
  const began = (await stat(join(root, 'mark'))).ctimeMs - 0.001;
  // Setting a file's time does not hide it.
  await utimes(join(root, 'etc/changed'), 0, 0);
  await write('tmp/new dir/file\nof two lines');
  await mkdir(join(root, 'opt/empty'), { recursive: true });
  await write('home/builder/.npm/_cacache/entry');
  await write('var/lib/apt/lists/Packages');
  await rm(join(root, 'etc/old'));
  assert.deepEqual(await newFiles(root, began, ['/home/builder/.npm', '/var/lib']), [
    'directory: /opt/empty',
    'file: /etc/changed',
    'file: /mark',
    'file: /tmp/new dir/file\nof two lines',
  ]);
  // Files that exist when apt ends belong to its packages.
  await write('var/log/apt/history.log');
  assert.deepEqual(await newFiles(root, began, []), []);
});

test('processes that a command’s child has started are found', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'left-behind-'));
  undoAfter(t, () => rm(directory, { recursive: true, force: true }));
  await writeFile(join(directory, 'started'), 'yes');
  // tail writes once the shell's fork has become tail.
  const child = spawn('sh', ['-c', 'tail -f started & read -r _; kill $!'], {
    cwd: directory,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  undoAfter(t, async () => {
    child.stdin.end();
    await exited;
  });
  await once(child.stdout, 'data');
  const found = grandchildrenOf(process.pid);
  assert.equal(found.length, 1);
  assert.match(found[0] ?? '', /^process \d+: tail -f started$/);
});
