import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { findOrphans, processIds } from '../../../scripts/quickstart/orphans.ts';

function temporaryDirectory(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'orphans-'));
  t.after(() => rmSync(directory, { recursive: true }));
  return directory;
}

function sudo(...args: string[]): string {
  return execFileSync('sudo', args, { encoding: 'utf8' }).trim();
}

test('a clean directory has nothing left over', (t) => {
  assert.deepEqual(findOrphans(temporaryDirectory(t), new Set()), []);
});

for (const [where, args, environment] of [
  ['arguments', (directory: string) => ['-f', '/dev/null', directory], () => ({})],
  ['environment', () => ['-f', '/dev/null'], (directory: string) => ({ TMP_DIR: directory })],
] as const) {
  test(`a process that names the directory in its ${where} is found, unless it was there before`, async (t) => {
    const directory = temporaryDirectory(t);
    const env = { ...process.env, ...environment(directory) };
    const child = spawn('tail', args(directory), { env, stdio: 'ignore' });
    await once(child, 'spawn');
    try {
      const found = findOrphans(directory, new Set());
      assert.equal(found.length, 1);
      assert.match(found[0] ?? '', new RegExp(`^process ${child.pid}: tail -f /dev/null`));
      assert.deepEqual(findOrphans(directory, new Set(processIds())), []);
    } finally {
      child.kill();
      await once(child, 'exit');
    }
  });
}

test('a mount that a quickstart left is found', (t) => {
  const directory = temporaryDirectory(t);
  const target = join(directory, 'mnt');
  execFileSync('mkdir', [target]);
  sudo('mount', '-t', 'tmpfs', 'tmpfs', target);
  try {
    assert.deepEqual(findOrphans(directory, new Set()), [`mount: ${target}`]);
  } finally {
    sudo('umount', target);
  }
});

test('a loop device that a quickstart left is found', (t) => {
  const directory = temporaryDirectory(t);
  const image = join(directory, 'image.raw');
  writeFileSync(image, '');
  truncateSync(image, 2 ** 20);
  const device = sudo('losetup', '--find', '--show', image);
  try {
    assert.deepEqual(findOrphans(directory, new Set()), [`loop device: ${device}`]);
  } finally {
    sudo('losetup', '--detach', device);
  }
});
