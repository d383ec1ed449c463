import { signalOf } from './cancellation.ts';
import { SYSTEM_PATH } from './cleanup/privileged.ts';
import { checkDebian } from './diagnosis/check-debian.ts';
import { checkBuildRights, checkDeviceMapper, checkKeyring, checkProgram } from './diagnosis/check-host.ts';
import type { CheckResult } from './diagnosis/check-result.ts';
import { elementDirectories, elementNames, expandElements, findElements } from './dib-elements.ts';
import type { DiskImage } from './disk-image.ts';
import { formatRow, type ImageFormat } from './formats.ts';
import type { CheckOptions } from './types.ts';

/** Programs that elements run on the host. One of each inner list is sufficient. */
const PROGRAMS_OF_ELEMENTS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  debootstrap: [['debootstrap']],
  'yum-minimal': [['dnf', 'yum']],
  'zypper-minimal': [['zypper']],
  containerfile: [['podman', 'docker']],
  'cache-url': [['curl']],
  'source-repositories': [['git']],
  'block-device-mbr': [['kpartx']],
  'block-device-gpt': [['sgdisk'], ['kpartx']],
  'block-device-efi': [['sgdisk'], ['kpartx'], ['mkfs.vfat']],
};

/** Keyrings with which debootstrap verifies its downloads for elements. */
const KEYRING_OF_ELEMENT: Readonly<Record<string, Parameters<typeof checkKeyring>[0] | undefined>> = {
  'debian-minimal': '/usr/share/keyrings/debian-archive-keyring.gpg',
  'ubuntu-minimal': '/usr/share/keyrings/ubuntu-archive-keyring.gpg',
};

/** Variables with which a site names another keyring, or configures debootstrap without one. */
const OWN_KEYRING =
  /^DIB_(?:(?:APT|DEBIAN)_KEYRING=.|DEBOOTSTRAP_EXTRA_ARGS=.*--(?:keyring|no-check-gpg|force-check-gpg))/;

/** Programs that formats of disk-image-create need, in addition to qemu-img. */
const PROGRAM_OF_FORMAT: Partial<Record<ImageFormat, string>> = { vhd: 'vhd-util', squashfs: 'mksquashfs' };

/**
 * Checks what disk-image-create needs on this host for a disk image: programs of its elements and formats, and
 * permissions.
 */
export async function* diagnoseDib(
  elements: string | readonly string[],
  diskimage: DiskImage,
  command: string,
  options: CheckOptions,
): AsyncGenerator<CheckResult> {
  const { name, formats, envVars = {} } = diskimage;
  const ownPath = typeof envVars.PATH === 'string' ? envVars.PATH : process.env.PATH;
  const searchPath = `${ownPath ?? ''}:${SYSTEM_PATH}`; // disk-image-create runs them with sudo
  const check = (programs: readonly string[], purpose: string): CheckResult => {
    const results = programs.map((program) =>
      checkProgram(program, `${purpose} of disk image ${name}`, searchPath),
    );
    const [first] = results;
    if (first === undefined) throw new TypeError('no program to check');
    return results.find(({ status }) => status === 'ok') ?? first;
  };
  const made: readonly ImageFormat[] = formats.length === 0 ? ['qcow2'] : formats;
  if (made.includes('qcow2')) yield check(['qemu-img'], 'for format qcow2');
  for (const format of made) {
    const program = PROGRAM_OF_FORMAT[format];
    if (program !== undefined) yield check([program], `for format ${format}`);
  }
  if (made.some((format) => formatRow(format).qemuDriver !== undefined)) {
    const type = fileSystemOf(diskimage);
    yield check([`mkfs.${type}`], `for the file system ${type}`);
  }
  let partitioning: string | undefined;
  const hasOwnKeyring = Object.entries(envVars).some(([key, value]) =>
    OWN_KEYRING.test(`${key}=${String(value)}`),
  );
  const named = elementNames(elements);
  const { site, shipped } = await elementDirectories(named, diskimage, command);
  const { names } = await expandElements(named, await findElements([...site, ...shipped]));
  for (const element of names) {
    for (const programs of PROGRAMS_OF_ELEMENTS[element] ?? []) {
      if (programs.includes('kpartx')) partitioning = element;
      yield check(programs, `for element ${element}`);
    }
    const keyring = hasOwnKeyring ? undefined : KEYRING_OF_ELEMENT[element];
    if (keyring !== undefined)
      yield await checkKeyring(keyring, `for element ${element} of disk image ${name}`);
  }
  yield check(['ps'], 'by disk-image-create');
  const debian = await checkDebian(names, diskimage, shipped);
  if (debian !== undefined) yield debian;
  yield checkProgram('sudo', 'by disk-image-create, even if it runs as root', searchPath);
  yield* checkBuildRights(signalOf(options));
  if (partitioning !== undefined)
    yield await checkDeviceMapper(`for element ${partitioning} of disk image ${name}`);
}

function fileSystemOf({ envVars = {} }: DiskImage): string {
  const type = envVars.FS_TYPE ?? process.env.FS_TYPE;
  return typeof type === 'string' && type !== '' ? type : 'ext4';
}
