// Not a unit test: it starts processes.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import {
  checkBuildRights,
  checkDeviceMapper,
  checkDiskImage,
  checkKeyring,
  checkKvm,
  checkProgram,
} from '../../src/diagnosis/check-host.ts';
import type { CheckResult } from '../../src/diagnosis/check-result.ts';
import type { DiskImage } from '../../src/disk-image.ts';

/** Runs the permission checks in a root process that another program starts. */
function rightsWith(...program: readonly string[]): readonly CheckResult[] {
  const module = JSON.stringify(import.meta.resolve('../../src/diagnosis/check-host.ts'));
  const code = `
    import { checkBuildRights } from ${module};
    const found = await Array.fromAsync(checkBuildRights(new AbortController().signal));
    console.log(JSON.stringify(found));
  `;
  const node = [process.execPath, '--disable-warning=ExperimentalWarning', '--input-type=module'];
  const [command = '', ...args] = program;
  const text = execFileSync(command, [...args, ...node, '--eval', code], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return JSON.parse(text) as readonly CheckResult[];
}

describe('the rights of builds', () => {
  test('the check of build rights reports no problem for root', async () => {
    const results = await Array.fromAsync(checkBuildRights(new AbortController().signal));
    const subjects = results.map(({ subject }) => subject);
    assert.deepEqual(subjects, ['root', 'mounts and chroot', 'loop devices', 'namespaces']);
    assert.deepEqual(
      results.filter(({ status }) => status === 'problem'),
      [],
    );
  });

  test('the check of build rights reports root in a container without CAP_SYS_ADMIN', () => {
    const results = rightsWith('setpriv', '--bounding-set=-sys_admin,-mknod', '--');
    const states = Object.fromEntries(results.map(({ subject, status }) => [subject, status]));
    assert.partialDeepStrictEqual(states, {
      root: 'ok',
      'mounts and chroot': 'problem',
      namespaces: 'warning',
    });
    const { message = '' } = results.find(({ subject }) => subject === 'mounts and chroot') ?? {};
    assert.match(message, /^root lacks CAP_SYS_ADMIN .*, CAP_MKNOD /);
  });

  test('the check of build rights reports a user without sudo', () => {
    // Without a mapping, the namespace's process has no user that sudo could serve, and can still read root's files.
    const [result, ...others] = rightsWith('unshare', '--user', '--');
    assert.deepEqual([result?.status, others], ['problem', []]);
    assert.match(result?.remedy ?? '', /NOPASSWD/);
  });
});

test('the check of build rights reports a sudo that demands a terminal, also for root in a terminal', async (t) => {
  const sudoers = await temporaryDirectory(t);
  await writeFile(join(sudoers, 'tty'), 'Defaults requiretty\n', { mode: 0o440 });
  const inNamespace = `mount --bind ${sudoers} /etc/sudoers.d && exec "$@"`;
  const inTerminal = 'SHELL=/bin/bash script --quiet --return --command "$(printf "%q " "$@")" /dev/null';
  for (const program of [[], ['bash', '-c', inTerminal, 'bash']]) {
    const [result, ...others] = rightsWith('unshare', '--mount', 'sh', '-c', inNamespace, 'sh', ...program);
    assert.deepEqual([result?.status, others], ['problem', []]);
    assert.match(result?.remedy ?? '', /^sudoers requires a terminal; add to it: Defaults:USER !requiretty$/);
  }
});

describe('a program', () => {
  test('the check of a program reports whether it is found, missing, or not executable', async (t) => {
    const directory = await temporaryDirectory(t);
    await writeFile(join(directory, 'locked'), '', { mode: 0o644 });
    const check = (name: string): CheckResult => checkProgram(name, 'for a test', directory);
    assert.equal(checkProgram('sh', 'for a test', '/bin').status, 'ok');
    assert.deepEqual(check('vhd-util').message, 'is missing; needed for a test');
    assert.match(check('vhd-util').remedy ?? '', /Debian has no package/);
    assert.match(check('qemu-img').remedy ?? '', /apt-get install qemu-utils/);
    assert.match(check('locked').message, /^is not executable/);
  });

  test('the checked programs for conversions and boot tests follow from the disk image', async () => {
    const boot = { expect: /login:/, accelerator: 'tcg' } as const;
    assert.deepEqual(await subjectsOf({ name: 'a', formats: ['raw'] }), []);
    assert.deepEqual(await subjectsOf({ name: 'a', formats: ['raw', 'vmdk'] }), ['program qemu-img']);
    assert.deepEqual(await subjectsOf({ name: 'a', formats: [], validation: { boot } }), [
      'program qemu-system-x86_64',
      'KVM',
    ]);
  });
});

test('a missing keyring is reported as a problem, since debootstrap would check no signature', async (t) => {
  const root = await temporaryDirectory(t);
  const path = '/usr/share/keyrings/debian-archive-keyring.gpg';
  const missing = await checkKeyring(path, 'for a test', root);
  assert.equal(missing.status, 'problem');
  assert.match(
    missing.message,
    /^is missing; without it debootstrap verifies no signature, .* needed for a test$/,
  );
  assert.equal(missing.remedy, 'install it (Debian: apt-get install debian-archive-keyring)');
  await mkdir(join(root, dirname(path)), { recursive: true });
  await writeFile(join(root, path), '');
  assert.equal((await checkKeyring(path, 'for a test', root)).status, 'ok');
});

test('KVM rights are not needed if KVM is not used', async () => {
  assert.equal((await checkKvm('tcg')).status, 'ok');
});

async function subjectsOf(image: DiskImage): Promise<readonly string[]> {
  return (await Array.fromAsync(checkDiskImage(image))).map(({ subject }) => subject);
}

/** Creates a device file whose number belongs to no driver. */
async function deviceWithoutDriver(t: TestContext): Promise<string> {
  const path = join(await temporaryDirectory(t), 'device');
  execFileSync('mknod', [path, 'c', '511', '255']);
  return path;
}

test('KVM is reported as a problem if its device file has no driver', async (t) => {
  const device = await deviceWithoutDriver(t);
  const { status, message, remedy } = await checkKvm('kvm', device);
  assert.deepEqual([status, message], ['problem', `${device} has no driver in this kernel`]);
  assert.match(remedy ?? '', /load the kernel module/);
  const missing = await checkKvm(undefined, `${device}-missing`);
  assert.deepEqual(
    [missing.status, missing.message],
    ['warning', `${device}-missing does not exist: machines run many times slower`],
  );
});

test('the check of images with partitions needs a kernel with the device mapper', async (t) => {
  const directory = await temporaryDirectory(t);
  const [control, devices] = [join(directory, 'control'), join(directory, 'misc')];
  await writeFile(devices, '237 loop-control\n229 fuse\n');
  const check = async (path = control): Promise<CheckResult> =>
    await checkDeviceMapper('for element vm', path, devices);
  const missing = await check();
  assert.deepEqual(
    [missing.status, missing.message],
    ['problem', `the kernel has none (${control} does not exist); needed for element vm`],
  );
  const withoutDriver = await deviceWithoutDriver(t);
  const { status, message } = await check(withoutDriver);
  assert.deepEqual(
    [status, message],
    ['problem', `the kernel has none (${withoutDriver} has no driver in this kernel); needed for element vm`],
  );
  await writeFile(devices, '236 device-mapper\n237 loop-control\n');
  assert.equal((await check()).status, 'ok');
  await writeFile(devices, '');
  await writeFile(control, '');
  assert.equal((await check()).status, 'ok');
});
