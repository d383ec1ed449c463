import { stat, utimes } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { signalOf, withTimeout } from '../cancellation.ts';
import { DiskSpaceGuard } from '../disk-space.ts';
import { ImageError } from '../errors.ts';
import { FORMAT_NAMES, formatRow, type ImageFormat } from '../formats.ts';
import { type CommandResult, runCommand } from '../process/command.ts';
import { environmentIn } from '../process/inherited-environment.ts';
import type { ImageFile, OperationOptions } from '../types.ts';
import { checkDisk } from './check-format.ts';
import { checkStructure, type DiskFile, dataSize, virtualSize } from './disk-information.ts';

/** Eight coroutines that write out of order are several times as fast as one. */
const PARALLEL = ['-W', '-m', '8'];

/** Maximum padding to a whole cylinder in a Virtual PC image, in bytes. */
const MAX_PADDING = 1024 * 1024;

/** Timeout of a conversion, in seconds, which is enough for a disk of one terabyte. */
const CONVERSION_LIMIT = 4 * 3600;

const GIBIBYTE = 2 ** 30;

/** Default maximum virtual size of a disk, in bytes. */
export const DEFAULT_MAX_DISK_SIZE: number = 256 * GIBIBYTE;

const PROGRESS = /\((\d+(?:\.\d+)?)\/100%\)/;

/** Returns whether qemu-img reads and writes the format. */
export function isConvertible(format: ImageFormat): boolean {
  return formatRow(format).qemuDriver !== undefined;
}

/** Chooses the file to convert from: the raw one, which needs no decoding, or else the first that qemu-img reads. */
export function conversionSource<File extends Pick<ImageFile, 'format'>>(
  files: readonly File[],
): File | undefined {
  return ['raw' as const, ...FORMAT_NAMES]
    .filter(isConvertible)
    .map((format) => files.find((file) => file.format === format))
    .find((file) => file !== undefined);
}

/** Settings of {@link convertImage}. */
export interface ConversionOptions extends OperationOptions {
  /**
   * Maximum virtual size of the disk in bytes, because a file of a few kilobytes can represent terabytes. Default 256
   * GiB.
   */
  readonly maxDiskSize?: number | undefined;
  /**
   * Space of the target's file system, shared by concurrent operations, for which this waits. Default: no other
   * operations.
   */
  readonly space?: DiskSpaceGuard;
  /** Backing file of the source, whose data becomes part of the result. Default: a backing file is rejected. */
  readonly backingFile?: string;
  /** True to compress a format that supports it. Default false. */
  readonly compress?: boolean | undefined;
}

/**
 * Converts an image to another format. The result has the modification time of the source. Checks the free space before
 * the conversion, and the structure of the result after it. Progress is in percent.
 *
 * @throws ImageError `image-not-self-contained`, `image-too-large`, `image-missing`, `conversion-failed`, `disk-full`,
 * `command-not-found`
 * @throws the signal's reason
 */
export async function convertImage(
  source: DiskFile,
  format: ImageFormat,
  target: string,
  {
    space = new DiskSpaceGuard(),
    backingFile,
    maxDiskSize,
    compress = false,
    ...options
  }: ConversionOptions = {},
): Promise<void> {
  await checkDisk(source, backingFile);
  const size = await checkDiskSize(source, maxDiskSize, options);
  const convert = async (): Promise<void> => {
    const expected = await write(source, format, target, size, { ...options, compress });
    await checkResult({ format, path: target }, expected, options);
  };
  const request = {
    name: `conversion of ${basename(source.path)} to ${format}`,
    path: target,
    bytes: await dataSize(source, options),
    tooLittle: (missing: number) => diskFull(source, target, `${missing} bytes more are needed`),
  };
  await space.during(request, convert, options);
  const { atimeMs, mtimeMs } = await stat(source.path);
  await utimes(target, new Date(atimeMs), new Date(mtimeMs));
}

/**
 * Refuses a disk above the size limit.
 *
 * @param maxDiskSize default {@link DEFAULT_MAX_DISK_SIZE}
 * @returns the disk's size
 * @throws ImageError `image-too-large`; errors of {@link virtualSize}
 */
export async function checkDiskSize(
  source: DiskFile,
  maxDiskSize: number = DEFAULT_MAX_DISK_SIZE,
  options: OperationOptions = {},
): Promise<number> {
  const size = await virtualSize(source, options);
  if (size <= maxDiskSize) return size;
  const [disk, limit] = [size, maxDiskSize].map((bytes) => Math.ceil(bytes / GIBIBYTE));
  throw new ImageError(
    'image-too-large',
    `the disk in "${source.path}" has ${disk} GiB, more than ${limit}; make it smaller, or raise virtual-size-limit`,
  );
}

/** Returns the expected size of the disk in the target. */
async function write(
  source: DiskFile,
  format: ImageFormat,
  target: string,
  size: number,
  { compress, ...operation }: Pick<ConversionOptions, 'compress'> & OperationOptions,
): Promise<number> {
  const { qemuDriver: from = '' } = formatRow(source.format);
  const { qemuDriver: to = '', qemuOptions, alignment = 1, compressible = false } = formatRow(format);
  const options = qemuOptions === undefined ? [] : ['-o', qemuOptions];
  const aligned = Math.ceil(size / alignment) * alignment;
  const run = (args: readonly string[]): Promise<void> => qemuImg(args, source, format, target, operation);
  const compression = compress && compressible ? ['-c'] : [];
  const convert = ['convert', '-p', ...compression, ...PARALLEL, '-f', from, '-O', to];
  if (aligned === size) {
    await run([...convert, ...options, source.path, target]);
  } else {
    // Otherwise qemu-img convert would create a disk of the source's size.
    await run(['create', '-q', '-f', to, ...options, target, String(aligned)]);
    await run([...convert, '-n', '--target-is-zero', source.path, target]);
  }
  return aligned;
}

async function checkResult(result: DiskFile, size: number, options: OperationOptions): Promise<void> {
  const [made] = await Promise.all([virtualSize(result, options), checkStructure(result, options)]);
  if (made === size || (result.format === 'vpc' && made > size && made - size < MAX_PADDING)) return;
  throw new ImageError(
    'conversion-failed',
    `the conversion to ${result.format} made a disk of ${made} bytes instead of ${size}; upgrade qemu-img`,
  );
}

async function qemuImg(
  args: readonly string[],
  source: DiskFile,
  format: ImageFormat,
  target: string,
  { onProgress, ...options }: OperationOptions,
): Promise<void> {
  const complaints: string[] = [];
  const run = (both: AbortSignal): Promise<CommandResult> =>
    runCommand('qemu-img', args, {
      cwd: dirname(target),
      env: environmentIn(dirname(target)),
      signal: both,
      onLine: (line) => {
        const percent = PROGRESS.exec(line)?.[1];
        if (percent !== undefined) onProgress?.({ done: Number(percent), total: 100 });
        else if (line.trim() !== '') complaints.push(line.trim());
      },
    });
  const result = await withTimeout(CONVERSION_LIMIT, signalOf(options), run, () => {
    const what = `the conversion of "${source.path}" to ${format}`;
    const remedy = 'try again when the host is less busy';
    return new ImageError('conversion-failed', `${what} took longer than ${CONVERSION_LIMIT} s; ${remedy}`);
  });
  if (result.exitCode === 0) return;
  const reason =
    complaints.join(' ') || `qemu-img ended with ${result.signal ?? `exit code ${result.exitCode}`}`;
  if (result.diskFull) throw diskFull(source, target, reason);
  throw new ImageError(
    'conversion-failed',
    `"${source.path}" could not be converted to ${format}: ${reason}`,
  );
}

function diskFull(source: DiskFile, target: string, reason: string): ImageError {
  return new ImageError(
    'disk-full',
    `"${source.path}" could not be converted in "${dirname(target)}": ${reason}; free space there`,
  );
}
