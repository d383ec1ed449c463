import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import type { ImageFile, Logger, UploadRequest } from '@nodepool-builder/image-builder';
import { CloudError } from '@nodepool-builder/image-builder/plugin';
import { dataSize, type GlanceImage, reportedDigests, storedDigest } from '../glance-image.ts';
import type { ImageApi } from '../image-api.ts';
import type { FileData } from './file-data.ts';
import { diskFormat } from './image-properties.ts';

/** The parts of an upload that its verification needs. */
interface VerifiedUpload {
  readonly images: Pick<ImageApi, 'cloud'>;
  readonly request: Pick<UploadRequest, 'file'>;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/**
 * Compares the stored data with the file, as far as the cloud describes it. Some clouds convert images on arrival, and
 * some report no size or digest: these cases only log a warning. Different bytes with the same format and size mean a
 * damaged image, and so does a truncated file.
 *
 * @throws CloudError `checksum-mismatch`
 */
export async function verifyImage(
  { images: { cloud }, request, logger, signal }: VerifiedUpload,
  image: GlanceImage,
  file: FileData,
): Promise<void> {
  const { path, size } = file;
  const stored = dataSize(image);
  const digest = storedDigest(image);
  if (digest !== undefined) {
    const { algorithm, value } = digest;
    const known: Readonly<Record<string, string>> = { ...(await file.checksums()) };
    const expected = known[algorithm] ?? (await hashFile(path, algorithm, { signal }));
    if (value === expected) return;
    const isCutOff =
      (stored ?? 0) < size && value === (await hashFile(path, algorithm, { size: stored ?? 0, signal }));
    if (isCutOff || isSameKind(image, request.file)) {
      throw new CloudError(
        'checksum-mismatch',
        `cloud ${cloud}: image ${image.id} has ${isCutOff ? `the first ${stored ?? 0} bytes and ` : ''}${algorithm} ${value}, but ${path} has ${expected}: it changed during the transfer or on disk; upload it again, and if that also fails, build it again`,
      );
    }
  } else if (isSameKind(image, request.file)) return;
  logger.warn(
    `cloud ${cloud}: image ${image.id} could not be compared with ${path}: the cloud reports ${described(image)}, and ${size} bytes of ${diskFormat(request.file.format)} were sent; it may have converted them`,
  );
}

/** Returns whether a cloud reports the same format and size as the file. */
export function isSameKind(
  image: GlanceImage,
  { format, size }: Pick<ImageFile, 'format' | 'size'>,
): boolean {
  const sent = diskFormat(format);
  return (image.disk_format ?? sent) === sent && dataSize(image) === size;
}

/** Returns whether a complete image has different bytes than its file, as far as the cloud describes it. */
export function isConverted(image: GlanceImage, file: ImageFile): boolean {
  const { md5 } = reportedDigests(image);
  return !isSameKind(image, file) && (md5 === undefined || md5 !== file.checksums?.md5);
}

function described(image: GlanceImage): string {
  const size = dataSize(image);
  const { algorithm, value } = storedDigest(image) ?? {};
  return [
    size === undefined ? 'no size' : `${size} bytes`,
    image.disk_format ?? 'no format',
    algorithm === undefined ? 'no digest' : `${algorithm} ${value}`,
  ].join(', ');
}

/** @param range `size`: number of bytes from the beginning of the file. Default: the whole file. */
async function hashFile(
  path: string,
  algorithm: string,
  { size, signal }: { readonly size?: number; readonly signal: AbortSignal },
): Promise<string> {
  const hash = createHash(algorithm);
  if (size === 0) return hash.digest('hex');
  const end = size === undefined ? Number.POSITIVE_INFINITY : size - 1;
  for await (const piece of createReadStream(path, { end, signal })) hash.update(piece as Buffer);
  return hash.digest('hex');
}
