import { ImageError, type ObjectSchema, type SettingsOf } from '@nodepool-builder/image-builder';
import { readSettings, shellWords } from '@nodepool-builder/image-builder/module-kit';

/** Text of a value, empty for null. `fitScalars` has written numbers and dates as Python does where a key takes text. */
export function toText(value: unknown): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Settings of a schema, see `readSettings`. Keys that it lacks are left out. */
export function ownSettings<const S extends ObjectSchema>(
  schema: S,
  value: object,
  absolute: (path: string) => string,
): SettingsOf<S> {
  const own = Object.entries(value).filter(([key]) => Object.hasOwn(schema.properties, key));
  return readSettings(schema, Object.fromEntries(own), absolute);
}

/** The words of a list, or of a string, which is split as by a shell; undefined if a quote is not closed. */
export function wordsOf(value: unknown): readonly string[] | undefined {
  if (typeof value !== 'string') return Array.isArray(value) ? value : [];
  try {
    return shellWords(value, 'the words');
  } catch (error) {
    if (error instanceof ImageError) return undefined;
    throw error;
  }
}

/** The last entry of each name, as in nodepool. */
export function lastOfEachName<T extends { readonly name: string }>(entries: readonly T[]): readonly T[] {
  return [...new Map(entries.map((entry) => [entry.name, entry])).values()];
}
