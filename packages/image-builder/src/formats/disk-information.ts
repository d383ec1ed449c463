import { stat } from 'node:fs/promises';
import { withTimeout } from '../cancellation.ts';
import { ImageError } from '../errors.ts';
import { formatRow } from '../formats.ts';
import { JsonReader } from '../json-reader.ts';
import { startError } from '../process/command.ts';
import { inheritedEnvironment } from '../process/inherited-environment.ts';
import type { ImageFile } from '../types.ts';

/** A disk image file and its format. */
export type DiskFile = Pick<ImageFile, 'format' | 'path'>;

/** The part of `qemu-img info --output=json` that is used. */
export interface DiskInformation {
  /** Size of the disk as a guest sees it, in bytes. */
  readonly 'virtual-size': number;
}

/** Bytes of a sector. */
const SECTOR = 512;

/** Default time limit of `qemu-img info`, `measure` and `check`, in seconds: they only read an image's tables. */
const INSPECTION_LIMIT = 600;

const INFORMATION = new JsonReader({
  type: 'object',
  required: ['virtual-size'],
  properties: { 'virtual-size': { type: 'number' } },
});

const MEASUREMENT = new JsonReader({
  type: 'object',
  required: ['required'],
  properties: { required: { type: 'number' } },
});

/** Settings for inspecting an image. */
export interface InspectionOptions {
  readonly signal?: AbortSignal;
  /** Time limit of one program, in seconds; default ten minutes. */
  readonly inspectionLimit?: number;
}

/**
 * Reads the header of an image with qemu-img. Call `checkDisk` first: qemu-img opens other files that a header names.
 *
 * @throws ImageError `conversion-failed` for a file that is not such an image, `command-not-found`
 * @throws the signal's reason
 */
export async function diskInformation(
  image: DiskFile,
  options: InspectionOptions = {},
): Promise<DiskInformation> {
  if (image.format === 'raw') {
    const { size } = await stat(image.path);
    return { 'virtual-size': Math.ceil(size / SECTOR) * SECTOR };
  }
  return INFORMATION.parse(await qemuImg('info', image, [], options));
}

/**
 * Bytes of uncompressed data in an image, without holes.
 *
 * @throws as {@link diskInformation}
 */
export async function dataSize(image: DiskFile, options: InspectionOptions = {}): Promise<number> {
  if (image.format === 'raw') return (await stat(image.path)).blocks * SECTOR;
  // qemu-img measures raw and qcow2 only, and leaves out holes for qcow2 only.
  const measured = await qemuImg('measure', image, ['-O', 'qcow2'], options);
  return MEASUREMENT.parse(measured).required;
}

/**
 * Checks the structure of an image. Formats that `qemu-img check` does not support pass.
 *
 * @throws as {@link diskInformation}
 */
export async function checkStructure(image: DiskFile, options: InspectionOptions = {}): Promise<void> {
  if (CHECKABLE.has(driverOf(image))) await qemuImg('check', image, [], options);
}

/** Drivers that `qemu-img check` supports. */
const CHECKABLE: ReadonlySet<string> = new Set(['qcow2', 'vhdx', 'vmdk', 'vdi']);

function driverOf({ format }: DiskFile): string {
  return formatRow(format).qemuDriver ?? 'raw';
}

async function qemuImg(
  command: string,
  image: DiskFile,
  args: readonly string[],
  { signal = new AbortController().signal, inspectionLimit = INSPECTION_LIMIT }: InspectionOptions,
): Promise<string> {
  signal.throwIfAborted();
  const run = (both: AbortSignal): Promise<string> => runQemuImg(command, image, args, both);
  return await withTimeout(inspectionLimit, signal, run, () => {
    throw new ImageError(
      'conversion-failed',
      `"qemu-img ${command}" of "${image.path}" took longer than ${inspectionLimit} s; build the image again`,
    );
  });
}

async function runQemuImg(
  command: string,
  image: DiskFile,
  args: readonly string[],
  signal: AbortSignal,
): Promise<string> {
  const { execa } = await import('execa'); // not at the top, as in process/command.ts
  const { failed, code, cause, stdout, stderr, shortMessage } = await execa(
    'qemu-img',
    // Without -f qemu-img would guess: a raw image can begin like one of another format.
    [command, '--output=json', '-f', driverOf(image), ...args, image.path],
    {
      cwd: '/',
      env: inheritedEnvironment(),
      extendEnv: false,
      stdin: 'ignore',
      reject: false,
      cleanup: false,
      cancelSignal: signal,
    },
  );
  signal.throwIfAborted();
  if (!failed) return stdout;
  if (code === 'ENOENT') {
    throw new ImageError('command-not-found', 'the command "qemu-img" is not installed; install qemu-utils');
  }
  if (code !== undefined) throw startError('qemu-img', '/', { code, cause });
  const reason = stderr || shortMessage;
  throw new ImageError('conversion-failed', `"${image.path}" is not a ${image.format} image: ${reason}`);
}
