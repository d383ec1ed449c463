import { stat } from 'node:fs/promises';
import { signalOf, withTimeout } from '../cancellation.ts';
import { STAT_BLOCK } from '../disk-space.ts';
import { ImageError } from '../errors.ts';
import { formatRow } from '../formats.ts';
import { JsonReader } from '../json-reader.ts';
import { startError } from '../process/command.ts';
import { inheritedEnvironment } from '../process/inherited-environment.ts';
import { NUMBER, objectOf } from '../settings-schema.ts';
import type { ImageFile, OperationOptions } from '../types.ts';

/** A disk image file and its format. */
export type DiskFile = Pick<ImageFile, 'format' | 'path'>;

/** Size of a sector in bytes. */
const SECTOR = 512;

/** Timeout of `qemu-img info`, `measure` and `check` in seconds. They read only an image's tables. */
const INSPECTION_LIMIT = 600;

const INFORMATION = new JsonReader(objectOf({ 'virtual-size': NUMBER }));

const MEASUREMENT = new JsonReader(objectOf({ required: NUMBER }));

const MAP = new JsonReader({
  type: 'array',
  items: objectOf({ start: NUMBER, length: NUMBER, zero: { type: 'boolean' } }),
});

/**
 * Returns the virtual size of the disk in bytes. Call `checkDisk` first, because qemu-img opens other files that a
 * header names.
 *
 * @throws ImageError `conversion-failed` for a file that is not such an image, `command-not-found`
 * @throws the signal's reason
 */
export async function virtualSize(image: DiskFile, options: OperationOptions = {}): Promise<number> {
  if (image.format === 'raw') return Math.ceil((await stat(image.path)).size / SECTOR) * SECTOR;
  return INFORMATION.parse(await qemuImg('info', image, options))['virtual-size'];
}

/**
 * Returns the bytes of uncompressed data in an image, without holes.
 *
 * @throws like {@link virtualSize}
 */
export async function dataSize(image: DiskFile, options: OperationOptions = {}): Promise<number> {
  if (image.format === 'raw') return (await stat(image.path)).blocks * STAT_BLOCK;
  // qemu-img measures only raw and qcow2, and leaves out holes only for qcow2.
  return MEASUREMENT.parse(await qemuImg('measure', image, options, '-O', 'qcow2')).required;
}

/** A part of a disk, in bytes. */
export interface Extent {
  readonly start: number;
  readonly length: number;
}

/**
 * Returns the parts of the disk that the file stores. All others are zero.
 *
 * @throws like {@link virtualSize}
 */
export async function dataExtents(image: DiskFile, options: OperationOptions = {}): Promise<Extent[]> {
  return MAP.parse(await qemuImg('map', image, options)).filter(({ zero }) => !zero);
}

/**
 * Checks the structure of an image. Formats that `qemu-img check` does not support pass.
 *
 * @throws like {@link virtualSize}
 */
export async function checkStructure(image: DiskFile, options: OperationOptions = {}): Promise<void> {
  if (['qcow2', 'vhdx', 'vmdk', 'vdi'].includes(driverOf(image))) await qemuImg('check', image, options);
}

function driverOf({ format }: DiskFile): string {
  return formatRow(format).qemuDriver ?? 'raw';
}

async function qemuImg(
  command: string,
  image: DiskFile,
  options: OperationOptions,
  ...args: readonly string[]
): Promise<string> {
  const signal = signalOf(options);
  signal.throwIfAborted();
  const { execa } = await import('execa'); // imported on demand, as in process/command.ts
  // Without -f qemu-img would guess the format, and a raw image can begin like another format.
  const all = [command, '--output=json', '-f', driverOf(image), ...args, image.path];
  const run = async (cancelSignal: AbortSignal): Promise<string> => {
    const { failed, code, cause, stdout, stderr, shortMessage } = await execa('qemu-img', all, {
      cwd: '/',
      env: inheritedEnvironment(),
      extendEnv: false,
      stdin: 'ignore',
      reject: false,
      cleanup: false,
      cancelSignal,
    });
    cancelSignal.throwIfAborted();
    if (!failed) return stdout;
    if (code === 'ENOENT') {
      throw new ImageError(
        'command-not-found',
        'the command "qemu-img" is not installed; install qemu-utils',
      );
    }
    if (code !== undefined) throw startError('qemu-img', '/', { code, cause });
    const reason = stderr || shortMessage;
    throw new ImageError('conversion-failed', `"${image.path}" is not a ${image.format} image: ${reason}`);
  };
  return await withTimeout(INSPECTION_LIMIT, signal, run, () => {
    const what = `"qemu-img ${command}" of "${image.path}" took longer than ${INSPECTION_LIMIT} s`;
    return new ImageError('conversion-failed', `${what}; build the image again`);
  });
}
