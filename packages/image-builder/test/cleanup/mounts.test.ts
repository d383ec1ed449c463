import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { withCode } from '../../../../test/fixtures/with-code.ts';
import { mountsBelow, parseMounts, unmount } from '../../src/cleanup/mounts.ts';

const MOUNTINFO = `22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:26 / /images/a\\040b/tmp rw - tmpfs tmpfs rw
31 30 0:5 / /images/a\\040b/tmp/new\\012line\\134 rw - devtmpfs dev rw
`;

/** Mounts a tmpfs in a temporary directory, which unmounts it when removed. */
async function mountTmpfs(path: string): Promise<void> {
  await mkdir(path, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', path]);
}

test('mount points are read with their spaces, line ends and backslashes', () => {
  const mountPoints = parseMounts(MOUNTINFO).map(({ mountPoint }) => mountPoint);
  assert.deepEqual(mountPoints, ['/', '/images/a b/tmp', '/images/a b/tmp/new\nline\\']);
});

test('mounts at and below a directory are found, the last one first, and no others', async (t) => {
  const root = await temporaryDirectory(t);
  const one = join(root, 'one – mit ä');
  for (const path of [one, join(one, 'inner'), join(one, 'inner')]) await mountTmpfs(path);
  await mountTmpfs(join(root, 'one – mit ä and more'));
  assert.deepEqual(await mountsBelow([one]), [join(one, 'inner'), join(one, 'inner'), one]);
});

test('a mount that is in use is unmounted lazily', async (t) => {
  const path = join(await temporaryDirectory(t), 'mount');
  await mountTmpfs(path);
  await writeFile(join(path, 'file'), '');
  const before = process.cwd();
  process.chdir(path);
  t.after(() => process.chdir(before));
  await assert.rejects(unmount(path, false), withCode('cleanup-failed', /umount.*busy/));
  await unmount(path, true);
  assert.deepEqual(await mountsBelow([path]), []);
});
