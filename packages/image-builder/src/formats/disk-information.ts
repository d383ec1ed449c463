import { stat } from 'node:fs/promises';
import { ImageError } from '../errors.ts';
import { formatRow } from '../formats.ts';
import { startError } from '../process/command.ts';
import { inheritedEnvironment } from '../process/inherited-environment.ts';
import type { ImageFile } from '../types.ts';
import { within } from '../within.ts';

/** A file, and what is to be read in it. */
export type DiskFile = Pick<ImageFile, 'format' | 'path'>;

/** What `qemu-img info --output=json` says of an image, as far as it is used. */
export interface DiskInformation {
  /** Bytes of the disk that a guest sees. */
  readonly 'virtual-size': number;
}

/** What a disk counts in. */
const SECTOR = 512;

/** Seconds for `qemu-img info`, `measure` and `check`, which read only the tables of an image. */
const INSPECTION_LIMIT = 600;

/** Settings for inspecting an image. */
export interface InspectionOptions {
  readonly signal?: AbortSignal;
  /** Seconds that one program may take; default ten minutes. */
  readonly inspectionLimit?: number;
}

/**
 * Has qemu-img read the header of an image. A raw one has none. `checkDisk` comes first: qemu-img opens other files that
 * a header names.
 *
 * @throws ImageError `conversion-failed` for what is no such image, `command-not-found`
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
  return JSON.parse(await qemuImg('info', image, [], options)) as DiskInformation;
}

/**
 * How many bytes the data of an image takes, holes left out and compression undone, before it is written anywhere.
 *
 * @throws as {@link diskInformation}
 */
export async function dataSize(image: DiskFile, options: InspectionOptions = {}): Promise<number> {
  if (image.format === 'raw') return (await stat(image.path)).blocks * SECTOR;
  // Only for raw and qcow2 can qemu-img tell, and only of qcow2 does it leave out the holes.
  const measured = await qemuImg('measure', image, ['-O', 'qcow2'], options);
  return (JSON.parse(measured) as { required: number }).required;
}

/**
 * Looks for damage in the structure of an image; what has none to speak of passes.
 *
 * @throws as {@link diskInformation}
 */
export async function checkStructure(image: DiskFile, options: InspectionOptions = {}): Promise<void> {
  if (CHECKABLE.has(driverOf(image))) await qemuImg('check', image, [], options);
}

/** The drivers of which `qemu-img check` knows what to look at. */
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
  return await within(inspectionLimit, signal, run, () => {
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
    // The driver is named, never guessed: a raw image could begin like one of another format.
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
