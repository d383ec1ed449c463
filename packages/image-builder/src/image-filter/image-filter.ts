import { parseDuration } from '../duration.ts';
import { ImageError } from '../errors.ts';
import type { SettingsSchema } from '../settings-schema.ts';

/**
 * Selects images of any provider. An image matches if, for every key that is present, it has one of the values. Images
 * that cannot be booted (incomplete, deactivated, hidden) never match.
 */
export interface ImageFilter {
  /** Globs (`*`, `?`) for the image's name in the provider. */
  readonly name?: readonly string[];
  /** Names under `providers[].images`, which our uploads store as a property. */
  readonly imageName?: readonly string[];
  readonly tag?: readonly string[];
  /** Values in the provider's spelling: `x86_64`. */
  readonly architecture?: readonly string[];
  /** Values in the provider's spelling: `private`, `shared`, `public`. */
  readonly visibility?: readonly string[];
  /**
   * {@link OWN_ACCOUNT}, or ids of other trusted owners. Default: {@link OWN_ACCOUNT}, because any owner can publish a
   * newer image with the same name.
   */
  readonly owner?: readonly string[];
  /** Exact values, by the name of the property. */
  readonly properties?: ReadonlyMap<string, readonly string[]>;
  /** Earliest build time; for images without one, the earliest creation time in the provider. */
  readonly createdAfter?: Date;
}

/** Stands for the owner of the credentials in use. */
export const OWN_ACCOUNT = 'self';

/** Entry of a filter in YAML. With one value it can also be written as `KEY=VALUE` on the command line. */
export interface FilterEntry {
  readonly name: string;
  readonly values: readonly string[];
}

/** Schema of a list of filters in YAML. */
export const IMAGE_FILTERS = {
  type: ['array', 'null'],
  items: {
    type: 'object',
    required: ['name', 'values'],
    additionalProperties: false,
    properties: {
      name: {
        type: 'string',
        minLength: 1,
        description: 'Key of the filter, as in `nodepool-builder latest --filter`.',
      },
      values: {
        type: 'array',
        items: { type: ['string', 'number', 'boolean'] },
        description: 'Permitted values. One match is enough.',
      },
    },
  },
  description: 'Filters that select the latest image in the provider that matches all of them.',
} as const;
IMAGE_FILTERS satisfies SettingsSchema;

/** Keys whose values are compared as text. */
const TEXT_KEYS: Readonly<Record<string, keyof ImageFilter>> = {
  name: 'name',
  'image-name': 'imageName',
  tag: 'tag',
  architecture: 'architecture',
  visibility: 'visibility',
  owner: 'owner',
};

/** Keys that set {@link ImageFilter.createdAfter}: the form of the value, and its milliseconds since 1970 or NaN. */
const TIME_KEYS: Readonly<Record<string, [form: string, read: (value: string, now: number) => number]>> = {
  'created-after': [
    'time such as 2026-05-01T00:00:00Z',
    // Date.parse also accepts a month or a part of a name
    (value) => (/^\d{4}-\d\d-\d\d/.test(value) ? Date.parse(value) : Number.NaN),
  ],
  'not-older-than': [
    'duration such as 12h or 7d',
    (value, now) => now - (parseDuration(value) ?? Number.NaN),
  ],
};

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
 * Combines entries into a filter. The values of entries with the same key are merged.
 *
 * @param now milliseconds since 1970, to which `not-older-than` is relative
 * @throws ImageError `invalid-filter` for an unknown key or an invalid value
 */
export function parseImageFilter(entries: readonly FilterEntry[], now: number = Date.now()): ImageFilter {
  const texts: Record<string, readonly string[]> = {};
  const properties = new Map<string, readonly string[]>();
  const times: number[] = [];
  for (const [key, group] of Map.groupBy(entries, ({ name }) => name)) {
    const values = group.flatMap((entry) => entry.values);
    if (values.length === 0) throw invalid(`"${key}" has no values, so that no image matches; give it one`);
    if (Object.hasOwn(TEXT_KEYS, key)) texts[TEXT_KEYS[key] ?? ''] = values;
    else if (Object.hasOwn(TIME_KEYS, key)) times.push(readTime(key, values, now));
    else properties.set(propertyName(key), values);
  }
  return {
    ...texts,
    ...(properties.size > 0 && { properties }),
    ...(times.length > 0 && { createdAfter: new Date(Math.max(...times)) }),
  };
}

/**
 * Combines lists of entries: an image must match every list. In one list, the values of entries with the same key are
 * merged, as in {@link parseImageFilter}.
 *
 * @throws ImageError `invalid-filter` if no value of a key is in all lists
 */
export function combineFilters(...lists: readonly (readonly FilterEntry[])[]): readonly FilterEntry[] {
  const combined = new Map<string, readonly string[]>();
  for (const list of lists) {
    for (const [key, group] of Map.groupBy(list, ({ name }) => name)) {
      const values = group.flatMap((entry) => entry.values);
      const earlier = combined.get(key);
      combined.set(key, earlier === undefined ? values : commonValues(key, earlier, values));
    }
  }
  return [...combined].map(([name, values]) => ({ name, values }));
}

/** Values of either list that match the other one. */
function commonValues(key: string, some: readonly string[], others: readonly string[]): readonly string[] {
  const passes = (value: string, wanted: readonly string[]): boolean =>
    wanted.some((one) => (key === 'name' ? matchesGlob(value, one) : value === one));
  const common = new Set([
    ...some.filter((value) => passes(value, others)),
    ...others.filter((value) => passes(value, some)),
  ]);
  if (common.size > 0) return [...common];
  const reason = `"${key}" must be "${some.join('" or "')}", and also "${others.join('" or "')}"`;
  throw invalid(`${reason}, which no image is; remove one of these conditions`);
}

function propertyName(key: string): string {
  if (key.startsWith(PROPERTY) && key !== PROPERTY) return key.slice(PROPERTY.length);
  const known = [...Object.keys(TEXT_KEYS), `${PROPERTY}NAME`, ...Object.keys(TIME_KEYS)];
  throw invalid(`unknown key "${key}"; use one of ${known.join(', ')}`);
}

function readTime(key: string, values: readonly string[], now: number): number {
  const [form = '', read] = TIME_KEYS[key] ?? [];
  const time = values.length === 1 ? read?.(values[0] ?? '', now) : undefined;
  if (time !== undefined && Number.isFinite(time)) return time;
  throw invalid(`"${key}" cannot be "${values.join('", "')}"; write one ${form}`);
}

function invalid(reason: string): ImageError {
  return new ImageError('invalid-filter', `image filter: ${reason}`);
}

/** Splits `tags` of an image's metadata at commas. */
export function splitTags(text: string = ''): string[] {
  return text
    .split(',')
    .map((tag) => tag.trim())
    .filter(Boolean);
}

/**
 * Returns whether a whole text matches a glob: `*` matches any number of characters, `?` exactly one. Matching is
 * case-sensitive and takes at most time proportional to the product of both lengths.
 */
export function matchesGlob(text: string, pattern: string): boolean {
  const [characters, wanted] = [Array.from(text), Array.from(pattern)];
  let at = 0;
  let next = 0;
  let star = -1; // index of the last `*`
  let taken = 0; // end of the text that it matches
  while (at < characters.length) {
    if (wanted[next] === '*') {
      star = next;
      taken = at;
      next += 1;
    } else if (wanted[next] === '?' || wanted[next] === characters[at]) {
      at += 1;
      next += 1;
    } else if (star >= 0) {
      taken += 1;
      at = taken;
      next = star + 1;
    } else {
      return false;
    }
  }
  return wanted.slice(next).every((character) => character === '*');
}
