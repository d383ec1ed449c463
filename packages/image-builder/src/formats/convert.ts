import { stat, statfs, utimes } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ImageError } from '../errors.ts';
import { FORMAT_NAMES, formatRow, type ImageFormat } from '../formats.ts';
import { runCommand } from '../process/command.ts';
import type { ImageFile, OperationOptions } from '../types.ts';
import { checkSelfContained } from './self-contained.ts';

/** Coroutines that read and write at the same time, out of order: several times as fast as one. */
const PARALLEL = ['-W', '-m', '8'];

/** Bytes of a block in `stat`, whatever the file system's own are (stat(2)). */
const STAT_BLOCK = 512;

const PROGRESS = /\((\d+(?:\.\d+)?)\/100%\)/;

/** Whether qemu-img reads and writes the format. */
export function isConvertible(format: ImageFormat): boolean {
  return formatRow(format).qemuDriver !== undefined;
}

/** The file that others are made from: the raw one, which needs no unpacking, or the first that can be read. */
export function conversionSource(files: readonly ImageFile[]): ImageFile | undefined {
  return ['raw' as const, ...FORMAT_NAMES]
    .filter(isConvertible)
    .map((format) => files.find((file) => file.format === format))
    .find((file) => file !== undefined);
}

/**
 * Writes an image in another format to `target`, with the source's time of modification: it is as old as that.
 * Progress counts hundredths.
 *
 * @throws ImageError `conversion-failed`, `disk-full`, `command-not-found`
 * @throws the signal's reason
 */
export async function convertImage(
  source: ImageFile,
  format: ImageFormat,
  target: string,
  { signal, onProgress }: OperationOptions = {},
): Promise<void> {
  await checkSpace(source, dirname(target));
  await checkSelfContained(source, signal);
  const { qemuDriver: from = '' } = formatRow(source.format);
  const { qemuDriver: to = '', qemuOptions } = formatRow(format);
  const options = qemuOptions === undefined ? [] : ['-o', qemuOptions];
  // The driver of the source is named, never guessed: a raw image could begin like one of another format.
  const args = ['convert', '-p', ...PARALLEL, '-f', from, '-O', to, ...options, source.path, target];
  const complaints: string[] = [];
  const result = await runCommand('qemu-img', args, {
    cwd: dirname(target),
    ...(signal && { signal }),
    onLine: (line) => {
      const percent = PROGRESS.exec(line)?.[1];
      if (percent !== undefined) onProgress?.({ done: Number(percent), total: 100 });
      else if (line.trim() !== '') complaints.push(line.trim());
    },
  });
  if (result.exitCode === 0) {
    const { atimeMs, mtimeMs } = await stat(source.path);
    await utimes(target, new Date(atimeMs), new Date(mtimeMs));
    return;
  }
  const reason =
    complaints.join(' ') || `qemu-img ended with ${result.signal ?? `exit code ${result.exitCode}`}`;
  if (result.diskFull) throw diskFull(source, dirname(target), reason);
  throw new ImageError(
    'conversion-failed',
    `"${source.path}" could not be converted to ${format}: ${reason}`,
  );
}

/** The result is seldom smaller than what the source occupies: better to refuse than to fill the disk first. */
async function checkSpace(source: ImageFile, directory: string): Promise<void> {
  const { blocks } = await stat(source.path);
  const { bavail, bsize } = await statfs(directory);
  const [needed, free] = [blocks * STAT_BLOCK, bavail * bsize];
  if (needed > free) throw diskFull(source, directory, `it needs about ${needed} bytes and ${free} are free`);
}

function diskFull(source: ImageFile, directory: string, reason: string): ImageError {
  return new ImageError(
    'disk-full',
    `"${source.path}" could not be converted in "${directory}": ${reason}; make room there`,
  );
}
