import { basename, dirname } from 'node:path';
import type {
  Checksums,
  ImageFile,
  ImageFormat,
  ImageProvider,
  ProviderImage,
} from '@nodepool-builder/image-builder';
import { checksumsOf, isConvertible } from '@nodepool-builder/image-builder/module-kit';
import { CommandError } from './command-error.ts';
import { inspectFile, withConvertedFile } from './image-file.ts';
import { jobImageId, jobUploadId } from './job-upload-id.ts';
import type { WithProgress } from './progress-display.ts';

/** One upload of a file. */
export interface FileUpload {
  readonly path: string;
  readonly format: ImageFormat;
  /** The image's name in the provider. */
  readonly name: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** Directory for a converted file. Default: that of the source file. */
  readonly temporaryDirectory?: string | undefined;
  /** The largest disk that is converted, in bytes; default 256 GiB. */
  readonly largestDisk?: number | undefined;
  /** Only find out what would be done. */
  readonly dryRun: boolean;
  readonly withProgress: WithProgress;
}

/** The source file: the keys of its JSON. */
export interface SourceFile extends Checksums {
  readonly file: string;
  readonly format: ImageFormat;
  readonly size: number;
}

/** The result: the keys of its JSON. */
export interface UploadedFile {
  /** Null in a dry run, if the image does not exist. */
  readonly 'external-id': string | null;
  readonly provider: string;
  readonly name: string;
  readonly 'image-id': string;
  readonly 'upload-id': string;
  /** Format of the image in the provider. */
  readonly format: ImageFormat;
  /** Size and digests of the image in the provider; null until a file of that format exists. */
  readonly size: number | null;
  readonly md5: string | null;
  readonly sha256: string | null;
  /** The source file. It was converted if its format differs. */
  readonly source: SourceFile;
  /** Whether the image existed before. */
  readonly existed: boolean;
}

/**
 * Uploads a file once: uploads of the same file, before or at the same time, have the same image as their result.
 *
 * @throws CommandError if the provider takes neither its format nor one that it can be converted to; ImageError if it is
 *   not of its format; errors of the provider and of the conversion
 */
export async function uploadFile(
  provider: ImageProvider,
  upload: FileUpload,
  signal: AbortSignal,
): Promise<UploadedFile> {
  const { path, name, metadata, dryRun, withProgress } = upload;
  const format = formatFor(provider, upload);
  const title = basename(path);
  const { size, mtime } = await inspectFile(upload);
  const checksums = await withProgress(`checksums of ${title}`, (onProgress) =>
    checksumsOf(path, { signal, onProgress }),
  );
  const uploadId = jobUploadId({ provider: provider.name, name, format, sha256: checksums.sha256 });
  const imageId = jobImageId(uploadId);
  const source = { format: upload.format, path, size, checksums };
  const find = async (): Promise<ProviderImage | undefined> =>
    (await provider.list({ signal })).find((image) => image.uploadId === uploadId);
  const there = await find();
  const isConverted = upload.format !== format;
  const result = (externalId: string | null, image?: Uploaded): UploadedFile => ({
    'external-id': externalId,
    provider: provider.name,
    name,
    'image-id': imageId,
    'upload-id': uploadId,
    format,
    ...sizeAndDigests(isConverted ? image : source),
    source: { file: path, format: upload.format, size, ...checksums },
    existed: there !== undefined,
  });
  if (there !== undefined || dryRun) return result(there?.externalId ?? null, there);
  const { temporaryDirectory = dirname(path), largestDisk } = upload;
  const settings = { directory: temporaryDirectory, largestDisk, withProgress };
  const transfer = async (file: ImageFile): Promise<UploadedFile> => {
    const request = { uploadId, imageId, imageName: name, builtAt: mtime, file, metadata, shared: true };
    const { externalId } = await withProgress(`upload of ${title} to ${provider.name}`, (onProgress) =>
      provider.upload(request, { signal, onProgress }),
    );
    // Another job may have finished first, with its own conversion.
    return result(externalId, (isConverted && (await find())) || file);
  };
  return isConverted
    ? await withConvertedFile(source, format, settings, signal, transfer)
    : await transfer(source);
}

/** Size and digests of an image. */
type Uploaded = Pick<ProviderImage, 'size' | 'checksums'>;

function sizeAndDigests(image: Uploaded | undefined): Pick<UploadedFile, 'size' | 'md5' | 'sha256'> {
  const { md5 = null, sha256 = null } = image?.checksums ?? {};
  return { size: image?.size ?? null, md5, sha256 };
}

/** Format of the image in the provider: that of the file if the provider takes it, else the provider's first choice. */
function formatFor({ name, formats }: ImageProvider, { path, format }: FileUpload): ImageFormat {
  const target = formats.find((taken) => taken === format) ?? formats.find(isConvertible);
  if (target === format || (target !== undefined && isConvertible(format))) return target;
  throw new CommandError(
    `provider "${name}" takes ${formats.join(', ')}, and ${path} is ${format}, which cannot be converted to it; build the image in another format`,
  );
}
