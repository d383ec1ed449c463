import { type ImageFormat, isImageFormat } from './formats.ts';
import type { Checksums, ClaimRequest, ImageFile } from './types.ts';

/** Names of the tags that identify an uploaded image in a provider. They are nodepool's if it has one. */
export const IMAGE_TAGS = {
  /** `providers[].name`. */
  provider: 'nodepool_provider_name',
  imageId: 'nodepool_build_id',
  uploadId: 'nodepool_upload_id',
  imageName: 'nodepool_image_name',
  /** End of the build, in ISO 8601. */
  builtAt: 'nodepool_build_time',
} as const;

/** Names of the tags about the file, for providers that do not know it as it was before the upload. */
const FILE_TAGS = {
  format: 'nodepool_format',
  size: 'nodepool_size',
  md5: 'nodepool_md5',
  sha256: 'nodepool_sha256',
} as const;

/** Content of an image's tags. */
export interface TaggedImage {
  readonly provider: string;
  readonly imageId: string;
  readonly uploadId: string;
  readonly imageName: string;
  readonly builtAt?: Date;
  readonly format?: ImageFormat;
  /** Size of the file in bytes. */
  readonly size?: number;
  readonly checksums?: Checksums;
}

/** Returns the name in the cloud: the requested one, else the image's name and id. */
export function cloudImageName({ externalName, imageName, imageId }: ClaimRequest): string {
  return externalName ?? `${imageName}-${imageId}`;
}

/** Tags with the identity of an upload. */
export function imageTags(provider: string, request: ClaimRequest): Record<string, string> {
  return {
    [IMAGE_TAGS.provider]: provider,
    [IMAGE_TAGS.imageId]: request.imageId,
    [IMAGE_TAGS.uploadId]: request.uploadId,
    [IMAGE_TAGS.imageName]: request.imageName,
    ...(request.builtAt !== undefined && { [IMAGE_TAGS.builtAt]: request.builtAt.toISOString() }),
  };
}

/** Tags with facts about the uploaded file that a provider cannot report. */
export function fileTags({ format, size, checksums }: ImageFile): Record<string, string> {
  return {
    [FILE_TAGS.format]: format,
    [FILE_TAGS.size]: String(size),
    ...(checksums && { [FILE_TAGS.md5]: checksums.md5, [FILE_TAGS.sha256]: checksums.sha256 }),
  };
}

/** Reads the tags. Returns undefined for an image that this software did not upload. */
export function readImageTags(tags: Readonly<Record<string, unknown>>): TaggedImage | undefined {
  const text = (name: string): string | undefined => {
    const value = tags[name];
    return typeof value === 'string' && value !== '' ? value : undefined;
  };
  const provider = text(IMAGE_TAGS.provider);
  const imageId = text(IMAGE_TAGS.imageId);
  const uploadId = text(IMAGE_TAGS.uploadId);
  const imageName = text(IMAGE_TAGS.imageName);
  if (!provider || !imageId || !uploadId || !imageName) return undefined;
  const built = Date.parse(text(IMAGE_TAGS.builtAt) ?? '');
  const format = text(FILE_TAGS.format);
  const size = Number(text(FILE_TAGS.size) ?? Number.NaN);
  const [md5, sha256] = [text(FILE_TAGS.md5), text(FILE_TAGS.sha256)];
  return {
    provider,
    imageId,
    uploadId,
    imageName,
    ...(Number.isFinite(built) && { builtAt: new Date(built) }),
    ...(isImageFormat(format) && { format }),
    ...(Number.isSafeInteger(size) && { size }),
    ...(md5 && sha256 && { checksums: { md5, sha256 } }),
  };
}
