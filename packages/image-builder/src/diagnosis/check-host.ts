import { constants } from 'node:fs';
import { access, open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BuildNamespace } from '../cleanup/build-namespace.ts';
import { isRoot, NO_PASSWORD, runPrivileged, SYSTEM_PATH, sudoRemedy } from '../cleanup/privileged.ts';
import type { DiskImage } from '../disk-image.ts';
import { formatRow } from '../formats.ts';
import { findProgram } from '../process/find-program.ts';
import { type Accelerator, QEMU } from '../qemu/machine-arguments.ts';
import { errnoOf } from '../system-error.ts';
import type { CheckResult } from './check-result.ts';

/** How to install programs that are not in the Debian package of their name. */
export const INSTALLATIONS: Readonly<Record<string, string | undefined>> = {
  'qemu-img': packageOf('qemu-utils'),
  [QEMU]: packageOf('qemu-system-x86'),
  mksquashfs: packageOf('squashfs-tools'),
  'mkfs.ext4': packageOf('e2fsprogs'),
  'mkfs.xfs': packageOf('xfsprogs'),
  'mkfs.btrfs': packageOf('btrfs-progs'),
  'mkfs.vfat': packageOf('dosfstools'),
  sgdisk: packageOf('gdisk'),
  docker: packageOf('docker.io'),
  ps: packageOf('procps'),
  'disk-image-create': packageOf('python3-diskimage-builder'),
  'vhd-util': "build it from Xen's blktap (Debian has no package), or remove the format vhd",
};

function packageOf(name: string): string {
  return `install it (Debian: apt-get install ${name}), or correct PATH`;
}

/**
 * Checks that a program is installed.
 *
 * @param purpose follows its name: `for format qcow2 of disk image debian`
 * @param searchPath default: PATH of this process
 */
export function checkProgram(
  program: string,
  purpose: string,
  searchPath: string | undefined = process.env.PATH,
): CheckResult {
  const found = findProgram(program, searchPath);
  const result = { area: 'tools', subject: `program ${program}` } as const;
  if ('path' in found) return { ...result, status: 'ok', message: `is ${found.path}` };
  const message =
    found.code === 'EACCES' ? `is not executable; needed ${purpose}` : `is missing; needed ${purpose}`;
  return { ...result, status: 'problem', message, remedy: INSTALLATIONS[program] ?? packageOf(program) };
}

/** Keyrings with which debootstrap verifies its downloads, and the Debian packages that contain them. */
const KEYRINGS = {
  '/usr/share/keyrings/debian-archive-keyring.gpg': 'debian-archive-keyring',
  '/usr/share/keyrings/ubuntu-archive-keyring.gpg': 'ubuntu-keyring',
};

/**
 * Checks that debootstrap can verify its downloads, because without the keyring it only warns.
 *
 * @param purpose follows the message: `for element debian-minimal of disk image debian`
 * @param root of the file system with the keyring
 */
export async function checkKeyring(
  path: keyof typeof KEYRINGS,
  purpose: string,
  root = '/',
): Promise<CheckResult> {
  const result = { area: 'tools', subject: `keyring ${path}` } as const;
  const error = await access(join(root, path), constants.R_OK).catch((reason: unknown) => reason);
  if (error === undefined) return { ...result, status: 'ok', message: 'is there' };
  const message = `is missing; without it debootstrap verifies no signature, even over plain HTTP; needed ${purpose}`;
  return {
    ...result,
    status: 'problem',
    message,
    remedy: `install it (Debian: apt-get install ${KEYRINGS[path]})`,
  };
}

/** Checks what every builder needs for a disk image: programs for conversions, and programs for the boot test. */
export async function* checkDiskImage({ name, formats, validation }: DiskImage): AsyncGenerator<CheckResult> {
  const converted = formats.find((format) => format !== 'raw' && formatRow(format).qemuDriver !== undefined);
  if (converted !== undefined)
    yield checkProgram('qemu-img', `for format ${converted} of disk image ${name}`);
  if (validation?.boot === undefined) return;
  yield checkProgram(QEMU, `for the boot test of disk image ${name}`);
  yield await checkKvm(validation.boot.accelerator);
}

const KVM = '/dev/kvm';

/** Checks that this user may use KVM. @param accelerator setting of the configuration. Default: KVM if it works. */
export async function checkKvm(accelerator?: Accelerator, device = KVM): Promise<CheckResult> {
  const result = { area: 'rights', subject: 'KVM' } as const;
  if (accelerator === 'tcg') return { ...result, status: 'ok', message: 'is not used: accelerator is tcg' };
  const error = await openDevice(device);
  if (error === undefined) return { ...result, status: 'ok', message: `this user may use ${device}` };
  const isForbidden = FORBIDDEN.includes(errnoOf(error) ?? '');
  const why = isForbidden ? `this user may not use ${device}` : `${device} ${describe(error)}`;
  const remedy = isForbidden
    ? 'add the user that runs the daemon to the group kvm'
    : 'load the kernel module kvm_intel or kvm_amd; on a virtual machine, enable nested virtualisation';
  if (accelerator === 'kvm') return { ...result, status: 'problem', message: why, remedy };
  const message = `${why}: machines run many times slower`;
  return { ...result, status: 'warning', message, remedy };
}

/** Error codes of a device that another user could open. */
const FORBIDDEN: readonly string[] = ['EACCES', 'EPERM'];

/**
 * Opens a device, which changes nothing. A device file alone proves nothing, because it may have no driver.
 *
 * @returns the error
 */
async function openDevice(path: string): Promise<unknown> {
  try {
    await (await open(path, 'r+')).close();
    return undefined;
  } catch (error) {
    return error;
  }
}

/** Opens a device as root, as builds do. @returns the error */
async function openDeviceAsRoot(path: string): Promise<unknown> {
  const error = await openDevice(path);
  if (isRoot() || !FORBIDDEN.includes(errnoOf(error) ?? '')) return error;
  return await runPrivileged('head', ['--bytes=0', path]).catch((reason: unknown) => reason);
}

/** Describes why a device cannot be opened; follows its path. */
function describe(error: unknown): string {
  if (errnoOf(error) === 'ENOENT') return 'does not exist';
  return NO_DRIVER.includes(errnoOf(error) ?? '') ? 'has no driver in this kernel' : 'may not be opened';
}

const NO_DRIVER: readonly string[] = ['ENODEV', 'ENXIO'];

/** Bits of the effective capabilities that builds need. */
const CAPABILITIES: readonly (readonly [name: string, bit: bigint])[] = [
  ['CAP_SYS_ADMIN (mounts, loop devices)', 21n],
  ['CAP_SYS_CHROOT (chroot)', 18n],
  ['CAP_MKNOD (device files)', 27n],
];

/** Checks the permissions that builds with a chroot need: root, mounts, loop devices, namespaces. */
export async function* checkBuildRights(signal: AbortSignal): AsyncGenerator<CheckResult> {
  const area = 'rights';
  const { status, remedy } = await statusOfRoot(signal);
  if (remedy !== undefined) {
    const who = isRoot() ? 'root, as disk-image-create does,' : 'this user, who is not root,';
    const message = `${who} may not use sudo without a password and a terminal`;
    yield { area, subject: 'root', status: 'problem', message, remedy };
    return;
  }
  const message = isRoot() ? 'this user is root' : 'this user may use sudo without a password';
  yield { area, subject: 'root', status: 'ok', message };
  yield checkCapabilities(status);
  yield await checkLoopDevices();
  if (isRoot()) yield await checkNamespaces();
}

/** Returns `/proc/self/status` of a root process, or the remedy if sudo rejects what builds need. */
async function statusOfRoot(
  signal: AbortSignal,
): Promise<{ readonly status: string; readonly remedy?: string }> {
  const { execa } = await import('execa'); // imported on demand, as in process/command.ts
  const result = await execa('sudo', ['-n', 'cat', '/proc/self/status'], {
    cwd: '/',
    env: { PATH: SYSTEM_PATH },
    extendEnv: false,
    stdin: 'ignore',
    detached: true, // without the terminal of this process, because a daemon has none
    reject: false,
    cancelSignal: signal,
  });
  const remedy = sudoRemedy(result.stderr ?? '');
  if (isRoot()) return { status: await readFile('/proc/self/status', 'utf8'), ...(remedy && { remedy }) };
  return result.failed ? { status: '', remedy: remedy ?? NO_PASSWORD } : { status: result.stdout };
}

function checkCapabilities(status: string): CheckResult {
  const effective = BigInt(`0x${/^CapEff:\s*([\da-f]+)$/m.exec(status)?.[1] ?? '0'}`);
  const missing = CAPABILITIES.filter(([, bit]) => (effective & (1n << bit)) === 0n).map(([name]) => name);
  const result = { area: 'rights', subject: 'mounts and chroot' } as const;
  if (missing.length === 0) return { ...result, status: 'ok', message: 'root has the capabilities' };
  const remedy = 'give the container or the unit these capabilities, or build on a host without such limits';
  return { ...result, status: 'problem', message: `root lacks ${missing.join(', ')}`, remedy };
}

const LOOP_CONTROL = '/dev/loop-control';

async function checkLoopDevices(): Promise<CheckResult> {
  const result = { area: 'rights', subject: 'loop devices' } as const;
  const error = await openDeviceAsRoot(LOOP_CONTROL);
  if (error === undefined) return { ...result, status: 'ok', message: `${LOOP_CONTROL} can be used` };
  const message = `${LOOP_CONTROL} ${describe(error)}`;
  const remedy = `load the kernel module loop; in a container, pass ${LOOP_CONTROL} and /dev/loop*`;
  return { ...result, status: 'problem', message, remedy };
}

/**
 * Checks that the kernel can create devices for partitions.
 *
 * @param purpose follows the message: `for element vm of disk image debian`
 * @param control the device mapper's own device
 * @param devices the kernel's list of such devices
 */
export async function checkDeviceMapper(
  purpose: string,
  control = '/dev/mapper/control',
  devices = '/proc/misc',
): Promise<CheckResult> {
  const result = { area: 'rights', subject: 'device mapper' } as const;
  const error = await openDeviceAsRoot(control);
  // If its device is missing, programs create it when the kernel has the driver.
  if (error === undefined || / device-mapper$/m.test(await readFile(devices, 'utf8'))) {
    return { ...result, status: 'ok', message: 'the kernel has it' };
  }
  const message = `the kernel has none (${control} ${describe(error)}); needed ${purpose}`;
  const remedy = 'load the kernel module dm_mod; in a container, pass /dev/mapper; or remove the partitions';
  return { ...result, status: 'problem', message, remedy };
}

async function checkNamespaces(): Promise<CheckResult> {
  const result = { area: 'rights', subject: 'namespaces' } as const;
  const namespace = await BuildNamespace.open(() => {});
  if (typeof namespace !== 'string') {
    await namespace.close();
    return { ...result, status: 'ok', message: 'builds run in namespaces of their own' };
  }
  const message = `builds run without namespaces, and are cleaned up without them: ${namespace}`;
  const remedy = 'allow the container or the unit to create namespaces; builds also work without them';
  return { ...result, status: 'warning', message, remedy };
}
