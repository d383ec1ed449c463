import { ImageError, type ObjectSchema, type SettingsOf } from '@nodepool-builder/image-builder';
import { readSettings, shellWords } from '@nodepool-builder/image-builder/internal';

/**
 * Returns the text of a value; empty for null. `fitScalars` has formatted numbers and dates like Python where a key
 * requires text.
 */
export function toText(value: unknown): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Returns the settings of a schema, see `readSettings`, without keys that the schema lacks. */
export function ownSettings<const S extends ObjectSchema>(
  schema: S,
  value: object,
  absolute: (path: string) => string,
): SettingsOf<S> {
  const own = Object.entries(value).filter(([key]) => Object.hasOwn(schema.properties, key));
  return readSettings(schema, Object.fromEntries(own), absolute);
}

/** Returns the words of a list, or of a string, which is split like in a shell; undefined if a quote is not closed. */
export function wordsOf(value: unknown): readonly string[] | undefined {
  if (typeof value !== 'string') return Array.isArray(value) ? value : [];
  try {
    return shellWords(value, 'the words');
  } catch (error) {
    if (error instanceof ImageError) return undefined;
    throw error;
  }
}

/** Returns the last entry of each name, as in nodepool. */
export function lastOfEachName<T extends { readonly name: string }>(entries: readonly T[]): readonly T[] {
  return [...new Map(entries.map((entry) => [entry.name, entry])).values()];
}
