import { createHash } from 'node:crypto';
import type { UploadRequest } from '@nodepool-builder/image-builder';
import { cloudImageName, fileTags, imageTags, readImageTags } from '@nodepool-builder/image-builder/internal';
import { IMAGE_TAGS, type TaggedImage } from '@nodepool-builder/image-builder/plugin';

/** Max length of names, label keys and label values. */
const MAX_LENGTH = 63;

/** Max labels of an image. */
const MAX_LABELS = 64;

/** Max size of a description, in bytes. */
const MAX_DESCRIPTION_LENGTH = 2048;

/** Converts a text to a label value. A digest replaces characters that labels cannot contain. */
export function labelValue(text: string): string {
  const plain = text.toLowerCase().replaceAll(/[^a-z0-9_-]/g, '-');
  if (plain === text && text.length <= MAX_LENGTH) return text;
  return `${plain.slice(0, MAX_LENGTH - 9)}-${labelDigest(text)}`;
}

/** Converts a text to a label key, which must begin with a letter. */
function labelKey(text: string): string {
  const key = labelValue(text);
  return /^[a-z]/.test(key) ? key : labelValue(`k-${text}`);
}

function labelDigest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 8);
}

/** Returns the image's name in Compute Engine, which must be unique in the project. */
export function imageResourceName(request: UploadRequest): string {
  const text = cloudImageName(request);
  const plain = text
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]/g, '-')
    .replace(/^[^a-z]/, 'i-');
  const isName = plain === text && text.length <= MAX_LENGTH && !text.endsWith('-');
  return isName ? text : `${plain.slice(0, MAX_LENGTH - 9)}-${labelDigest(text)}`;
}

/** Returns the labels by which lists find an image. */
export function imageLabels(
  provider: string,
  request: UploadRequest,
  more: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const own = {
    [IMAGE_TAGS.provider]: labelValue(provider),
    [IMAGE_TAGS.imageId]: labelValue(request.imageId),
    [IMAGE_TAGS.uploadId]: labelValue(request.uploadId),
    [IMAGE_TAGS.imageName]: labelValue(request.imageName),
  };
  const metadata = Object.entries({ ...more, ...request.metadata })
    .map(([key, value]) => [labelKey(key), labelValue(value)] as const)
    .slice(0, MAX_LABELS - Object.keys(own).length);
  return { ...Object.fromEntries(metadata), ...own };
}

/**
 * Returns the description of an image: all tags as JSON, because labels cannot contain every character. Metadata that
 * exceeds the max size is only in the labels.
 */
export function imageDescription(provider: string, request: UploadRequest): string {
  const own = { ...imageTags(provider, request), ...fileTags(request.file) };
  let description = JSON.stringify(own);
  const metadata: Record<string, string> = {};
  for (const [key, value] of Object.entries(request.metadata ?? {})) {
    const longer = JSON.stringify({ ...metadata, [key]: value, ...own });
    if (Buffer.byteLength(longer) > MAX_DESCRIPTION_LENGTH) continue;
    metadata[key] = value;
    description = longer;
  }
  return description;
}

/** Reads the tags from a description. Empty for a foreign image. */
export function tagsOf(description: unknown): Record<string, string> {
  try {
    const tags: unknown = JSON.parse(String(description));
    if (typeof tags !== 'object' || tags === null) return {};
    return Object.fromEntries(
      Object.entries(tags).flatMap(([key, value]) => (typeof value === 'string' ? [[key, value]] : [])),
    );
  } catch {
    return {};
  }
}

/** Reads the tags of an image. Undefined if nodepool-builder did not upload it. */
export function taggedImage(description: unknown): TaggedImage | undefined {
  return readImageTags(tagsOf(description));
}
