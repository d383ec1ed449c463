import { mkdtemp, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import {
  checksumsOf,
  convertImage,
  formatRow,
  type ImageFile,
  type ImageFormat,
  type ImageProvider,
  isConvertible,
} from '@nodepool-builder/image-builder';
import { CommandError } from './command-error.ts';
import { jobImageId, jobUploadId } from './job-upload-id.ts';
import type { WithProgress } from './with-progress.ts';

/** What is uploaded, and what is asked about it. */
export interface FileUpload {
  readonly path: string;
  readonly format: ImageFormat;
  /** The image's name in the provider. */
  readonly name: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** For a converted file; default: where the file is. */
  readonly temporaryDirectory?: string | undefined;
  /** Whether to say only what would be done. */
  readonly dryRun: boolean;
  readonly withProgress: WithProgress;
}

/** What became of it: the keys of its JSON. */
export interface UploadedFile {
  /** Null in a dry run, if it is not there. */
  readonly 'external-id': string | null;
  readonly provider: string;
  readonly name: string;
  readonly 'image-id': string;
  readonly 'upload-id': string;
  /** What it is in the provider. */
  readonly format: ImageFormat;
  /** Bytes of the file that was given; so are the digests its. */
  readonly size: number;
  readonly md5: string;
  readonly sha256: string;
  /** Whether it was there before. */
  readonly existed: boolean;
}

/**
 * Brings a file into a provider, once: whoever asks for the same again, or at the same time, gets the same image.
 *
 * @throws CommandError if it is in no format that the provider takes, nor can be converted to one; what the provider
 *   and the conversion throw
 */
export async function uploadFile(
  provider: ImageProvider,
  upload: FileUpload,
  signal: AbortSignal,
): Promise<UploadedFile> {
  const { path, name, metadata, dryRun, withProgress } = upload;
  const format = formatFor(provider, upload);
  const title = basename(path);
  const { size, mtime } = await stat(path).catch((error: Error) => {
    throw new CommandError(`${path} cannot be read: ${error.message}; name an image file`, { cause: error });
  });
  const checksums = await withProgress(`checksums of ${title}`, (onProgress) =>
    checksumsOf(path, { signal, onProgress }),
  );
  const uploadId = jobUploadId({ provider: provider.name, name, format, sha256: checksums.sha256 });
  const imageId = jobImageId(uploadId);
  const there = (await provider.list({ signal })).find((image) => image.uploadId === uploadId);
  const result = (externalId: string | null): UploadedFile => ({
    'external-id': externalId,
    provider: provider.name,
    name,
    'image-id': imageId,
    'upload-id': uploadId,
    format,
    size,
    ...checksums,
    existed: there !== undefined,
  });
  if (there !== undefined || dryRun) return result(there?.externalId ?? null);
  const source = { format: upload.format, path, size, checksums };
  return await inFormat(source, format, upload, signal, async (file) => {
    const request = { uploadId, imageId, imageName: name, builtAt: mtime, file, metadata, shared: true };
    const { externalId } = await withProgress(`upload of ${title} to ${provider.name}`, (onProgress) =>
      provider.upload(request, { signal, onProgress }),
    );
    return result(externalId);
  });
}

/** The format that it will have there: its own if the provider takes that, else the one the provider likes best. */
function formatFor({ name, formats }: ImageProvider, { path, format }: FileUpload): ImageFormat {
  const target = formats.find((taken) => taken === format) ?? formats.find(isConvertible);
  if (target === format || (target !== undefined && isConvertible(format))) return target;
  throw new CommandError(
    `provider "${name}" takes ${formats.join(', ')}, and ${path} is ${format}, which cannot be converted to it; build the image in another format`,
  );
}

/** Works with the image in a format: with the file itself, or with one that is converted, and removed afterwards. */
async function inFormat<T>(
  source: ImageFile,
  format: ImageFormat,
  { temporaryDirectory = dirname(source.path), withProgress }: FileUpload,
  signal: AbortSignal,
  work: (file: ImageFile) => Promise<T>,
): Promise<T> {
  if (source.format === format) return await work(source);
  const directory = await mkdtemp(join(temporaryDirectory, '.nodepool-builder-upload-'));
  try {
    const path = join(directory, `image.${formatRow(format).extension}`);
    await withProgress(`conversion of ${basename(source.path)} to ${format}`, (onProgress) =>
      convertImage(source, format, path, { signal, onProgress }),
    );
    const { size } = await stat(path);
    return await work({ format, path, size, checksums: await checksumsOf(path, { signal }) });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
