import type { SettingsOf } from '@nodepool-builder/image-builder';
import { JsonReader } from '@nodepool-builder/image-builder/plugin';

const ARGUMENT = {
  type: 'object',
  required: ['by'],
  properties: {
    by: { type: 'string' }, // user who cancels it: `root@host`
    'upload-id': { type: 'string' }, // for an upload of the image instead of its build
  },
} as const;

const READER = new JsonReader(ARGUMENT);

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
export function decodeCancel(payload: Buffer): SettingsOf<typeof ARGUMENT> {
  return READER.parse(payload.toString());
}
