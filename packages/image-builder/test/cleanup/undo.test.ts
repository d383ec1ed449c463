import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { loopDevices, loopsBelow } from '../../src/cleanup/loop-devices.ts';
import { mountsBelow } from '../../src/cleanup/mounts.ts';
import { undo } from '../../src/cleanup/undo.ts';

test('the cleanup undoes the host’s /dev in a chroot, a mounted loop device on a tmpfs and their users', async (t) => {
  const root = await temporaryDirectory(t);
  const [image, build] = [join(root, 'dib_image.X'), join(root, 'dib_build.X', 'mnt')];
  for (const directory of [image, build]) await mkdir(directory, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', image]);
  const file = join(image, 'image0.raw');
  await writeFile(file, '');
  await truncate(file, 8 * 1024 * 1024);
  execFileSync('mke2fs', ['-q', '-t', 'ext4', file]);
  execFileSync('mount', ['-o', 'loop', file, build]);
  await mkdir(join(build, 'dev'));
  execFileSync('mount', ['--bind', '/dev', join(build, 'dev')]);
  const user = spawn('sleep', ['600'], { cwd: join(build, 'dev'), stdio: 'ignore' });
  const exit = once(user, 'exit');
  assert.equal(loopsBelow(await loopDevices(), [root]).length, 1);

  await undo({ roots: [root], groups: [] });

  await exit;
  assert.deepEqual(await mountsBelow([root]), []);
  assert.deepEqual(loopsBelow(await loopDevices(), [root]), []);
  assert.ok(existsSync('/dev/null'));
});
