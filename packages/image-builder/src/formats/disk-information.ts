import { stat } from 'node:fs/promises';
import { ImageError } from '../errors.ts';
import { formatRow } from '../formats.ts';
import type { ImageFile } from '../types.ts';

/** A file, and what is to be read in it. */
export type DiskFile = Pick<ImageFile, 'format' | 'path'>;

/** What `qemu-img info --output=json` says of an image, as far as it is used. */
export interface DiskInformation {
  /** Bytes of the disk that a guest sees. */
  readonly 'virtual-size': number;
}

/** What a disk counts in. */
const SECTOR = 512;

/**
 * Reads the header of an image. A raw one has none.
 *
 * @throws ImageError `conversion-failed` for what is no such image, `command-not-found`
 * @throws the signal's reason
 */
export async function diskInformation(image: DiskFile, signal?: AbortSignal): Promise<DiskInformation> {
  if (image.format === 'raw') {
    const { size } = await stat(image.path);
    return { 'virtual-size': Math.ceil(size / SECTOR) * SECTOR };
  }
  return JSON.parse(await qemuImg('info', image, [], signal)) as DiskInformation;
}

/**
 * How many bytes the data of an image takes, holes left out and compression undone, before it is written anywhere.
 *
 * @throws as {@link diskInformation}
 */
export async function dataSize(image: DiskFile, signal?: AbortSignal): Promise<number> {
  if (image.format === 'raw') return (await stat(image.path)).blocks * SECTOR;
  // Only for raw and qcow2 can qemu-img tell, and only of qcow2 does it leave out the holes.
  const measured = await qemuImg('measure', image, ['-O', 'qcow2'], signal);
  return (JSON.parse(measured) as { required: number }).required;
}

/**
 * Looks for damage in the structure of an image; what has none to speak of passes.
 *
 * @throws as {@link diskInformation}
 */
export async function checkStructure(image: DiskFile, signal?: AbortSignal): Promise<void> {
  if (CHECKABLE.has(driverOf(image))) await qemuImg('check', image, [], signal);
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
  signal: AbortSignal | undefined,
): Promise<string> {
  const { execa } = await import('execa'); // not at the top, as in process/command.ts
  const { failed, code, stdout, stderr, shortMessage } = await execa(
    'qemu-img',
    // The driver is named, never guessed: a raw image could begin like one of another format.
    [command, '--output=json', '-f', driverOf(image), ...args, image.path],
    { cwd: '/', stdin: 'ignore', reject: false, cleanup: false, ...(signal && { cancelSignal: signal }) },
  );
  signal?.throwIfAborted();
  if (!failed) return stdout;
  if (code === 'ENOENT') {
    throw new ImageError('command-not-found', 'the command "qemu-img" is not installed; install qemu-utils');
  }
  const reason = stderr || shortMessage;
  throw new ImageError('conversion-failed', `"${image.path}" is no ${image.format} image: ${reason}`);
}
