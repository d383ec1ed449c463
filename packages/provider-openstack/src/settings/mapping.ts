/** A mapping of YAML or JSON. */
export type Mapping = Readonly<Record<string, unknown>>;

export function isMapping(value: unknown): value is Mapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The entry's mapping; an empty one if it is absent, null or anything else. */
export function mappingAt(mapping: Mapping, key: string): Mapping {
  const value = Object.hasOwn(mapping, key) ? mapping[key] : undefined;
  return isMapping(value) ? value : {};
}

/**
 * Keys with underscores, for `region-name` and `region_name` are the same key everywhere, and numbers as texts; at
 * every depth.
 */
export function normalized(mapping: Mapping): Mapping {
  return Object.fromEntries(
    Object.entries(mapping).map(([key, value]) => [key.replaceAll('-', '_'), normalizedValue(value)]),
  );
}

function normalizedValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(normalizedValue);
  if (typeof value === 'number') return String(value);
  return isMapping(value) ? normalized(value) : value;
}

/** Both, merged at every depth; `over` wins. */
export function mergedDeeply(under: Mapping, over: Mapping): Mapping {
  const merged: Record<string, unknown> = { ...under };
  for (const [key, value] of Object.entries(over)) {
    merged[key] = isMapping(value) ? mergedDeeply(mappingAt(merged, key), value) : value;
  }
  return merged;
}

/** Two layers of one cloud: `auth` is merged key by key, any other key is replaced. */
export function overlaid(under: Mapping, over: Mapping): Mapping {
  return { ...under, ...over, auth: { ...mappingAt(under, 'auth'), ...mappingAt(over, 'auth') } };
}
