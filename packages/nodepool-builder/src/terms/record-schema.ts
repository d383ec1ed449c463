import type { SettingsSchema } from '@nodepool-builder/image-builder';
import { objectOf } from '@nodepool-builder/image-builder/internal';

export const TEXT = { type: 'string' } as const;
export const TEXT_OR_NULL = { type: ['string', 'null'] } as const;
/** A time in ISO 8601, in UTC. */
export const TIME = { type: 'string', format: 'date-time' } as const;
/** A time in ISO 8601, in UTC, or null. */
export const TIME_OR_NULL = { type: ['string', 'null'], format: 'date-time' } as const;
/** A number of things or bytes. */
export const COUNT = { type: 'integer', minimum: 0 } as const;

/** Makes the schema of a record that contains all of these keys. */
export function recordSchema<const P extends Readonly<Record<string, SettingsSchema>>>(properties: P) {
  return { ...objectOf(properties), additionalProperties: false } as const;
}
