import type { SettingsSchema } from '@nodepool-builder/image-builder/module-kit';

/** Schema of the argument of `image-log:<image-id>`. */
export const LOG_REQUEST = {
  type: 'object',
  required: ['offset'],
  properties: {
    offset: { type: 'integer', minimum: 0 }, // of the first byte
    wait: { type: 'number', minimum: 0, maximum: 60 }, // seconds, if nothing follows the offset; default 0
    'upload-id': { type: 'string' }, // for the log of an upload
  },
} as const satisfies SettingsSchema;

/** Schema of its result. */
export const LOG_PART = {
  type: 'object',
  required: ['offset', 'data', 'complete'],
  properties: {
    offset: { type: 'integer' }, // of the first byte
    data: { type: 'string' }, // in base64
    complete: { type: 'boolean' }, // nothing follows
  },
} as const satisfies SettingsSchema;

const FUNCTION = 'image-log:';

/** Function that each builder offers for the images of whose build or uploads it has a log. */
export function logFunction(imageId: string): string {
  return `${FUNCTION}${imageId}`;
}
