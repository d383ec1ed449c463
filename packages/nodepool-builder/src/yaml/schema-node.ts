import type { SettingsSchema } from '@nodepool-builder/image-builder';

/** Description of the keys of other parts of nodepool, which are accepted and ignored. */
export const ELSEWHERE = 'For other parts of nodepool.';

/** Schemas of keys of other parts of nodepool. */
export function elsewhere(...keys: readonly string[]): Record<string, SettingsSchema> {
  return Object.fromEntries(keys.map((key) => [key, { description: ELSEWHERE }]));
}

/** A path or another text. */
export const TEXT = { type: 'string', minLength: 1 } as const satisfies SettingsSchema;

/** A name, which may look like a number. */
export const NAME = { ...TEXT, format: 'text' } as const satisfies SettingsSchema;
