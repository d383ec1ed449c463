import { mkdtemp, realpath, rm, stat } from 'node:fs/promises';
import { basename, extname, join, resolve } from 'node:path';
import {
  type Checksums,
  FORMAT_NAMES,
  type ImageFile,
  type ImageFormat,
} from '@nodepool-builder/image-builder';
import {
  checkFormat,
  checksumsOf,
  convertImage,
  formatOfExtension,
  formatRow,
  writeDurably,
} from '@nodepool-builder/image-builder/internal';
import { CommandError, failing, usageError } from '../terms/command-error.ts';
import { COUNT, TEXT } from '../terms/record-schema.ts';
import type { WithProgress } from './progress.ts';

/** An image file that a user names. */
export type SourceFile = Pick<ImageFile, 'path' | 'format'>;

/** Describes a file, with the keys of its JSON. */
export interface FileDescription extends Checksums {
  readonly file: string;
  readonly format: ImageFormat;
  readonly size: number;
}

/** Schema of a format. */
export const FORMAT = { enum: FORMAT_NAMES, description: 'Format.' } as const;

/** Schemas of the keys of a {@link FileDescription}. */
export const FILE_PROPERTIES = {
  file: { ...TEXT, description: 'Absolute path.' },
  format: FORMAT,
  size: { ...COUNT, description: 'Bytes.' },
  md5: { ...TEXT, description: 'Digest, in hexadecimal.' },
  sha256: { ...TEXT, description: 'Digest, in hexadecimal.' },
} as const;

/** Settings of {@link withConvertedFile}. */
export interface ConversionSettings {
  /** Directory for the converted file. */
  readonly directory: string;
  /** Maximum virtual size of a disk to convert, in bytes. Default 256 GiB. */
  readonly maxDiskSize: number | undefined;
  /** True to compress qcow2. Default false. */
  readonly compress?: boolean;
  readonly withProgress: WithProgress;
}

/**
 * Returns the image file that a user names, without symbolic links in its path. It may be missing, which
 * {@link inspectFile} reports.
 *
 * @param named value of the option with the format. Default: the format of the extension
 * @throws CommandError if the format is unknown
 */
export async function sourceFile(
  file: string,
  option: string,
  named: ImageFormat | undefined,
): Promise<SourceFile> {
  const format = named ?? formatOfExtension(extname(file).slice(1));
  if (format === undefined) {
    throw usageError(`the name of ${file} does not show its format; give it with ${option}`);
  }
  return { path: await realpath(file).catch(() => resolve(file)), format };
}

/**
 * Checks an image file, and returns its size and modification time.
 *
 * @throws CommandError, ImageError
 */
export async function inspectFile(
  file: SourceFile,
): Promise<{ readonly size: number; readonly mtime: Date }> {
  const { path } = file;
  const { size, mtime } = await stat(path).catch(
    failing(`${path} cannot be read`, 'name an image file', 'not-found'),
  );
  if (size === 0) throw new CommandError(`${path} is empty; name an image file`);
  await checkFormat(file);
  return { size, mtime };
}

/**
 * Creates a directory with a random name.
 *
 * @throws CommandError
 */
export async function makeTemporaryDirectory(parent: string, prefix: string): Promise<string> {
  const unwritable = failing(`cannot write to ${parent}`, 'name another directory');
  return await mkdtemp(join(parent, prefix)).catch(unwritable);
}

/** Converts an image to a temporary file, which is removed after its use unless it was moved. */
export async function withConvertedFile<T>(
  source: SourceFile,
  format: ImageFormat,
  { directory, maxDiskSize, compress, withProgress }: ConversionSettings,
  signal: AbortSignal,
  use: (file: ImageFile & { readonly checksums: Checksums }) => Promise<T>,
): Promise<T> {
  const temporary = await makeTemporaryDirectory(directory, '.nodepool-builder-upload-');
  try {
    const path = join(temporary, `image.${formatRow(format).extension}`);
    const { size: sourceSize } = await stat(source.path);
    await withProgress(`conversion of ${basename(source.path)} to ${format}`, (onProgress) =>
      convertImage(source, format, path, {
        signal,
        onProgress: (progress) => onProgress({ ...progress, size: sourceSize }),
        maxDiskSize,
        compress,
      }),
    );
    const { size } = await stat(path);
    return await use({ format, path, size, checksums: await checksumsOf(path, { signal }) });
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

/**
 * Writes the digests of a file to `FILE.md5` and `FILE.sha256`, in the format of `md5sum --check` and `sha256sum
 * --check`.
 */
export async function writeChecksumFiles(file: string, { md5, sha256 }: Checksums): Promise<void> {
  await writeDurably(`${file}.md5`, `${md5}  ${basename(file)}\n`, 0o644);
  await writeDurably(`${file}.sha256`, `${sha256}  ${basename(file)}\n`, 0o644);
}

/** Removes the digest files of a file. */
export async function removeChecksumFiles(file: string): Promise<void> {
  for (const extension of ['md5', 'sha256']) await rm(`${file}.${extension}`, { force: true });
}
