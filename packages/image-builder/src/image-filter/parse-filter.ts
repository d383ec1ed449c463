import { parseDuration } from '../duration.ts';
import { ImageError } from '../errors.ts';
import type { FilterEntry, ImageFilter } from './image-filter.ts';

/** Keys whose values are compared as text. */
const TEXT_KEYS: ReadonlyMap<string, keyof ImageFilter> = new Map([
  ['name', 'name'],
  ['image-name', 'imageName'],
  ['tag', 'tag'],
  ['architecture', 'architecture'],
  ['visibility', 'visibility'],
  ['owner', 'owner'],
] as const);

/** A key that sets {@link ImageFilter.createdAfter}. */
interface TimeKey {
  /** Expected form of the value. */
  readonly form: string;
  /** Milliseconds since the epoch; NaN for an invalid value. */
  readonly read: (value: string, now: number) => number;
}

const TIME_KEYS: ReadonlyMap<string, TimeKey> = new Map([
  [
    'created-after',
    {
      form: 'time such as 2026-05-01T00:00:00Z',
      // Date.parse also accepts a month or a part of a name
      read: (value: string) => (/^\d{4}-\d\d-\d\d/.test(value) ? Date.parse(value) : Number.NaN),
    },
  ],
  [
    'not-older-than',
    {
      form: 'duration such as 12h or 7d',
      read: (value: string, now: number) => now - (parseDuration(value) ?? Number.NaN),
    },
  ],
]);

const PROPERTY = 'property:';

/**
 * Parses `KEY=VALUE`.
 *
 * @throws ImageError `invalid-filter`
 */
export function filterEntry(text: string): FilterEntry {
  const at = text.indexOf('=');
  if (at > 0) return { name: text.slice(0, at), values: [text.slice(at + 1)] };
  throw invalid(`"${text}" is not KEY=VALUE; write for example name=debian-*`);
}

/**
 * Combines entries into a filter. Entries with the same key add up their values.
 *
 * @param now milliseconds since the epoch, from which `not-older-than` counts
 * @throws ImageError `invalid-filter` for an unknown key or an invalid value
 */
export function parseImageFilter(entries: readonly FilterEntry[], now: number = Date.now()): ImageFilter {
  const byKey = new Map<string, readonly string[]>();
  for (const { name, values } of entries) byKey.set(name, [...(byKey.get(name) ?? []), ...values]);
  const texts: Record<string, readonly string[]> = {};
  const properties = new Map<string, readonly string[]>();
  const times: number[] = [];
  for (const [key, values] of byKey) {
    if (values.length === 0) throw invalid(`"${key}" has no values, so that no image passes; give it one`);
    const textKey = TEXT_KEYS.get(key);
    const timeKey = TIME_KEYS.get(key);
    if (textKey !== undefined) texts[textKey] = values;
    else if (timeKey !== undefined) times.push(readTime(key, timeKey, values, now));
    else properties.set(propertyName(key), values);
  }
  return {
    ...texts,
    ...(properties.size > 0 && { properties }),
    ...(times.length > 0 && { createdAfter: new Date(Math.max(...times)) }),
  };
}

function propertyName(key: string): string {
  if (key.startsWith(PROPERTY) && key !== PROPERTY) return key.slice(PROPERTY.length);
  const known = [...TEXT_KEYS.keys(), `${PROPERTY}NAME`, ...TIME_KEYS.keys()];
  throw invalid(`unknown key "${key}"; use one of ${known.join(', ')}`);
}

function readTime(key: string, { form, read }: TimeKey, values: readonly string[], now: number): number {
  const [value = '', ...others] = values;
  const time = others.length === 0 ? read(value, now) : Number.NaN;
  if (Number.isFinite(time)) return time;
  throw invalid(`"${key}" cannot be "${values.join('", "')}"; write one ${form}`);
}

function invalid(what: string): ImageError {
  return new ImageError('invalid-filter', `image filter: ${what}`);
}
