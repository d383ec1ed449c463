import type { SettingsSchema } from '@nodepool-builder/image-builder';

export const TEXT = { type: 'string' } as const;
export const TEXT_OR_NULL = { type: ['string', 'null'] } as const;
/** A time in ISO 8601, in UTC. */
export const TIME = { type: 'string', format: 'date-time' } as const;
/** A time in ISO 8601, in UTC, or null. */
export const TIME_OR_NULL = { type: ['string', 'null'], format: 'date-time' } as const;
/** A number of things or bytes. */
export const COUNT = { type: 'integer', minimum: 0 } as const;

/** Makes the schema of a record that contains all of these keys, unless some are optional. */
export function recordSchema<
  const P extends Readonly<Record<string, SettingsSchema>>,
  const O extends keyof P & string = never,
>(properties: P, optional: readonly O[] = []) {
  const isRequired = (key: string): key is Exclude<keyof P & string, O> =>
    !optional.some((one) => one === key);
  const required: readonly Exclude<keyof P & string, O>[] = Object.keys(properties).filter(isRequired);
  return { type: 'object', additionalProperties: false, required, properties } as const;
}
