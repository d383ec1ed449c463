// Not a unit test: it starts processes.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryDirectory } from '../../../test/fixtures/temporary-directory.ts';
import { DIB_MODULE, type DibSettings } from '../src/dib.ts';
import type { DiskImage } from '../src/disk-image.ts';

/** Returns the programs that a disk image needs, with the status of each. */
async function programs(settings: DibSettings, image: Partial<DiskImage>): Promise<Record<string, string>> {
  const diskimage = { name: 'a', formats: [], ...image };
  const results = await Array.fromAsync(DIB_MODULE.diagnose?.(settings, diskimage, {}) ?? []);
  return Object.fromEntries(
    results
      .filter(({ area }) => area === 'tools')
      .map(({ subject, status }) => [subject.replace('program ', ''), status]),
  );
}

test('the required programs follow from the elements and diskimage-builder’s own dependencies', async () => {
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

test('the required programs follow from elements-dir, formats, and the file system', async (t) => {
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

test('the keyring for debootstrap follows from the elements, unless the site names its own', async () => {
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

/** Returns whether the device mapper is checked for a disk image with these elements. */
async function checksDeviceMapper(elements: string[]): Promise<boolean> {
  const results = await Array.fromAsync(
    DIB_MODULE.diagnose?.({ elements }, { name: 'a', formats: [] }, {}) ?? [],
  );
  return results.some(({ subject }) => subject === 'device mapper');
}

test('the device mapper is checked only if an element makes partitions', async () => {
  assert.equal(await checksDeviceMapper(['debian', 'vm']), true);
  assert.equal(await checksDeviceMapper(['debian']), false);
});

/** Returns the check result for a release, with elements like those in Debian’s diskimage-builder. */
async function checkRelease(t: TestContext, image: Partial<DiskImage>, ...elements: string[]) {
  const prefix = await temporaryDirectory(t);
  const own = join(prefix, 'lib/python3/dist-packages/diskimage_builder/elements');
  const files = {
    'bin/disk-image-create': '',
    [`${own}/debian-minimal/environment.d/10-debian-minimal.bash`]: DEBIAN_MINIMAL,
    [`${own}/base/pre-install.d/03-baseline-tools`]: 'install-packages software-properties-common',
  };
  for (const [name, content] of Object.entries(files)) {
    const file = resolve(prefix, name);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, content, { mode: 0o755 });
  }
  const settings = {
    elements: ['debian-minimal', ...elements],
    'dib-cmd': join(prefix, 'bin/disk-image-create'),
  };
  const results = DIB_MODULE.diagnose?.(settings, { name: 'web', formats: [], ...image }, {}) ?? [];
  const found = await Array.fromAsync(results);
  return found.find(({ subject }) => subject.startsWith('diskimage-builder for Debian '));
}

/** Script that supports bookworm, like the element in diskimage-builder 3.37. */
const DEBIAN_MINIMAL = `
security=\${DIB_RELEASE}\${DIB_DEBIAN_SECURITY_SUBPATH:-/updates}
[ "$DIB_RELEASE" != bookworm ] || security=bookworm-security
export DIB_APT_SOURCES_CONF=\${DIB_APT_SOURCES_CONF:-"security:deb http://security.debian.org/ $security main"}
`;

for (const { title, image, elements = [], message } of [
  {
    title: 'the check of a release accepts one that diskimage-builder knows',
    image: { release: 'bookworm' },
    message: 'supports the release',
  },
  {
    title:
      'the check of a release reports a suite and a package that Debian lacks, which debian-fixes corrects',
    image: { release: 'trixie' },
    message:
      'it requests the suite trixie/updates, and it installs the package software-properties-common, which Debian does not have',
  },
  {
    title: 'the check of a release accepts a suite that env-vars correct, and reports a missing package',
    image: { release: 'trixie', envVars: { DIB_DEBIAN_SECURITY_SUBPATH: '-security' } },
    message: 'it installs the package software-properties-common, which Debian does not have',
  },
  {
    title: 'the check of a disk image without a release uses stable Debian',
    image: {},
    message:
      'it requests the suite stable/updates, and it installs the package software-properties-common, which Debian does not have',
  },
  {
    title: 'the check of a release accepts any release with debian-fixes',
    image: { release: 'trixie' },
    elements: ['debian-fixes'],
    message: 'has the element debian-fixes',
  },
]) {
  test(title, async (t) => {
    const result = await checkRelease(t, image, ...elements);
    assert.equal(result?.message, message);
    assert.equal(result.status, result.remedy === undefined ? 'ok' : 'problem');
    if (result.remedy) assert.match(result.remedy, /^add debian-fixes to the elements of disk image web/);
  });
}

test('another user’s shell configuration does not run in the check of a release', async (t) => {
  const directory = await temporaryDirectory(t);
  const [startup, mark] = [join(directory, 'startup'), join(directory, 'mark')];
  await writeFile(startup, `touch ${mark}`);
  await checkRelease(t, { release: 'trixie', envVars: { BASH_ENV: startup } });
  assert.equal(existsSync(mark), false);
});
