import type { SettingsSchema } from '@nodepool-builder/image-builder/module-kit';

/** A node of a JSON Schema, as far as the configuration uses it. */
export type SchemaNode = SettingsSchema;

/** Keys that belong to another part of nodepool: they are accepted, and nothing is read from them. */
export function elsewhere(...keys: readonly string[]): Record<string, SchemaNode> {
  return Object.fromEntries(keys.map((key) => [key, {}]));
}

export const NAME: SchemaNode = { type: 'string', minLength: 1 };
export const PATH: SchemaNode = { type: 'string', minLength: 1 };
/** Text that YAML may take for a number. */
export const SCALAR: SchemaNode = { type: ['string', 'number', 'null'] };
