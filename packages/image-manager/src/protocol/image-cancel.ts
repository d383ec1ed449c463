import { objectOf, TEXT } from '@nodepool-builder/image-builder/internal';
import { JsonReader } from '@nodepool-builder/image-builder/plugin';

const READER = new JsonReader(
  objectOf(
    { by: TEXT }, // user who cancels it: `root@host`
    { 'upload-id': TEXT }, // for an upload of the image instead of its build
  ),
);

/** Function that a builder offers while it builds an image or uploads it. */
export function cancelFunction(imageId: string): string {
  return `image-cancel:${imageId}`;
}

/**
 * Formats the argument of a {@link cancelFunction} job, which has no result.
 *
 * @param by who cancels it: `root@host`
 */
export function encodeCancel(by: string, uploadId: string | undefined): string {
  return JSON.stringify({ by, 'upload-id': uploadId });
}

/** @throws Error if the argument is not valid */
export function decodeCancel(payload: Buffer): ReturnType<typeof READER.parse> {
  return READER.parse(payload.toString());
}
