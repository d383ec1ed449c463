import { createHash } from 'node:crypto';
import type { UploadRequest } from '@nodepool-builder/image-builder';
import {
  cloudImageName,
  fileTags,
  IMAGE_TAGS,
  imageTags,
  readImageTags,
  type TaggedImage,
} from '@nodepool-builder/image-builder/module-kit';

/** Length of names, and of keys and values of labels. */
const LONGEST = 63;

/** Labels of an image, at most. */
const MOST_LABELS = 64;

/** Bytes of a description, at most. */
const LONGEST_DESCRIPTION = 2048;

/** A text as the value of a label: its digest stands for characters that labels cannot have. */
export function labelValue(text: string): string {
  const plain = text.toLowerCase().replaceAll(/[^a-z0-9_-]/g, '-');
  if (plain === text && text.length <= LONGEST) return text;
  return `${plain.slice(0, LONGEST - 9)}-${digestOf(text)}`;
}

/** A text as the key of a label, which begins with a letter. */
function labelKey(text: string): string {
  const key = labelValue(text);
  return /^[a-z]/.test(key) ? key : labelValue(`k-${text}`);
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 8);
}

/** The name of an image in Compute Engine, which must be unique in the project. */
export function imageResourceName(request: UploadRequest): string {
  const text = cloudImageName(request);
  const plain = text
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]/g, '-')
    .replace(/^[^a-z]/, 'i-');
  const isName = plain === text && text.length <= LONGEST && !text.endsWith('-');
  return isName ? text : `${plain.slice(0, LONGEST - 9)}-${digestOf(text)}`;
}

/** Labels of an image, by which lists find it. */
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
    .slice(0, MOST_LABELS - Object.keys(own).length);
  return { ...Object.fromEntries(metadata), ...own };
}

/**
 * Description of an image: all tags as JSON, as labels cannot have every character. Metadata that would make it too long is
 * in the labels alone.
 */
export function imageDescription(provider: string, request: UploadRequest): string {
  const own = { ...imageTags(provider, request), ...fileTags(request.file) };
  let description = JSON.stringify(own);
  const metadata: Record<string, string> = {};
  for (const [key, value] of Object.entries(request.metadata ?? {})) {
    const longer = JSON.stringify({ ...metadata, [key]: value, ...own });
    if (Buffer.byteLength(longer) > LONGEST_DESCRIPTION) continue;
    metadata[key] = value;
    description = longer;
  }
  return description;
}

/** Tags in a description; empty for that of an image of somebody else. */
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

/** What the tags of an image say. Undefined if this software did not upload it. */
export function taggedImage(description: unknown): TaggedImage | undefined {
  return readImageTags(tagsOf(description));
}
