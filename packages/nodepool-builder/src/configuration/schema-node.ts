import type { SettingsSchema } from '@nodepool-builder/image-builder/module-kit';

/** Keys of other parts of nodepool: they are accepted and ignored. */
export function elsewhere(...keys: readonly string[]): Record<string, SettingsSchema> {
  return Object.fromEntries(keys.map((key) => [key, {}]));
}

/** A name or a path. */
export const TEXT = { type: 'string', minLength: 1 } as const satisfies SettingsSchema;
