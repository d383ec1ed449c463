// Not a unit test: it starts processes.
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../../../test/fixtures/temporary-directory.ts';
import { DIB, type DibSettings } from '../src/dib.ts';
import type { DiskImage } from '../src/disk-image.ts';

/** Names of the programs that a disk image needs, with the state of each. */
async function programs(settings: DibSettings, image: Partial<DiskImage>): Promise<Record<string, string>> {
  const diskimage = { name: 'a', formats: [], ...image };
  const results = await Array.fromAsync(DIB.diagnose?.(settings, diskimage, {}) ?? []);
  return Object.fromEntries(
    results
      .filter(({ area }) => area === 'tools')
      .map(({ subject, state }) => [subject.replace('program ', ''), state]),
  );
}

test("programs follow from elements, those of diskimage-builder's own dependencies, too", async () => {
  const needed = await programs({ elements: ['debian', 'vm'] }, {});
  assert.deepEqual(Object.keys(needed).toSorted(), [
    'debootstrap',
    'keyring /usr/share/keyrings/debian-archive-keyring.gpg',
    'kpartx',
    'mkfs.ext4',
    'ps',
    'qemu-img',
    'sudo',
  ]);
  assert.equal(needed['qemu-img'], 'ok');
});

test('programs follow from elements-dir, formats, and the file system', async (t) => {
  const elementsDir = await temporaryDirectory(t);
  await mkdir(join(elementsDir, 'mine'));
  await writeFile(join(elementsDir, 'mine/element-deps'), 'cache-url\nmine\n');
  const image: Partial<DiskImage> = {
    elementsDir,
    formats: ['vhd', 'squashfs', 'tgz'],
    envVars: { FS_TYPE: 'bcachefs' },
  };
  const needed = await programs({ elements: 'mine' }, image);
  assert.deepEqual(Object.keys(needed), ['vhd-util', 'mksquashfs', 'mkfs.bcachefs', 'curl', 'ps', 'sudo']);
  assert.deepEqual([needed['vhd-util'], needed['mkfs.bcachefs']], ['problem', 'problem']);
  assert.deepEqual(Object.keys(await programs({ elements: [] }, { formats: ['tgz'] })), ['ps', 'sudo']);
});

test('the keyring of debootstrap follows from the elements, unless the site names its own', async () => {
  const keyrings = async (element: string, envVars = {}): Promise<readonly string[]> =>
    Object.keys(await programs({ elements: [element] }, { envVars })).filter((name) =>
      name.startsWith('keyring'),
    );
  assert.deepEqual(await keyrings('ubuntu-minimal'), [
    'keyring /usr/share/keyrings/ubuntu-archive-keyring.gpg',
  ]);
  assert.deepEqual(await keyrings('vm'), []);
  for (const envVars of [
    { DIB_APT_KEYRING: '/etc/site.gpg' },
    { DIB_DEBOOTSTRAP_EXTRA_ARGS: '--merged-usr --keyring=/etc/site.gpg' },
  ])
    assert.deepEqual(await keyrings('debian', envVars), []);
  assert.equal((await keyrings('debian', { DIB_DEBOOTSTRAP_EXTRA_ARGS: '--merged-usr' })).length, 1);
});

/** Whether a disk image with these elements has the device mapper checked. */
async function checksDeviceMapper(elements: string[]): Promise<boolean> {
  const results = await Array.fromAsync(DIB.diagnose?.({ elements }, { name: 'a', formats: [] }, {}) ?? []);
  return results.some(({ subject }) => subject === 'device mapper');
}

test('the device mapper is checked only if an element makes partitions', async () => {
  assert.equal(await checksDeviceMapper(['debian', 'vm']), true);
  assert.equal(await checksDeviceMapper(['debian']), false);
});
