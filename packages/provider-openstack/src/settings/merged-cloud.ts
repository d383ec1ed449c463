import { CloudError } from '@nodepool-builder/image-builder/plugin';

/** A YAML or JSON mapping. */
export type Mapping = Readonly<Record<string, unknown>>;

export function isMapping(value: unknown): value is Mapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the mapping under a key, or an empty mapping if the value is absent or not a mapping. */
export function mappingAt(mapping: Mapping, key: string): Mapping {
  const value = Object.hasOwn(mapping, key) ? mapping[key] : undefined;
  return isMapping(value) ? value : {};
}

/**
 * Replaces dashes in keys with underscores, because `region-name` means `region_name`, and numbers with text;
 * recursively.
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

/** Merges two mappings recursively; `over` takes precedence. */
export function mergedDeeply(under: Mapping, over: Mapping): Mapping {
  const merged: Record<string, unknown> = { ...under };
  for (const [key, value] of Object.entries(over)) {
    merged[key] = isMapping(value) ? mergedDeeply(mappingAt(merged, key), value) : value;
  }
  return merged;
}

/** Creates an error that contains no values from the settings, because any of them may be a secret. */
export function invalidSettings(reason: string, remedy: string): CloudError {
  return new CloudError('invalid-settings', `${reason}; ${remedy}`);
}

/** YAML 1.1 booleans. */
const BOOLEANS: Readonly<Record<string, boolean>> = {
  true: true,
  yes: true,
  on: true,
  false: false,
  no: false,
  off: false,
};

/** A cloud with all layers merged. */
export class MergedCloud {
  /** Name of the cloud in messages and in {@link CloudSettings}. */
  readonly name: string;
  readonly values: Mapping;
  readonly #where: string;
  readonly #warn: (message: string) => void;

  /** @param where provider, cloud and configuration files, for messages */
  constructor(name: string, values: Mapping, where: string, warn: (message: string) => void) {
    this.name = name;
    this.values = values;
    this.#where = where;
    this.#warn = warn;
  }

  /** Creates an error about this cloud. The reason must not contain a value, which may be a secret. */
  invalid(reason: string, remedy: string): CloudError {
    return invalidSettings(`${this.#where}: ${reason}`, remedy);
  }

  warn(message: string): void {
    this.#warn(`${this.#where}: ${message}`);
  }

  /** Reads a text; undefined if the value is absent, null or empty. */
  text(key: string): string | undefined {
    const raw = this.rawText(key, this.values);
    return raw === undefined ? undefined : this.filledIn(key, raw);
  }

  /** Like {@link text}, but leaves braces unchanged, because secrets may contain them. */
  rawText(key: string, values: Mapping): string | undefined {
    const value = (Object.hasOwn(values, key) ? values[key] : undefined) ?? '';
    if (typeof value === 'string') return value || undefined;
    throw this.invalid(`${key} is not text`, 'write one text, in quotes if it looks like something else');
  }

  /** Replaces placeholders such as `{region_name}` with the cloud's value. `{{` is a literal brace. */
  filledIn(key: string, text: string): string {
    return text.replaceAll(/\{\{|\}\}|\{([^{}]*)\}|[{}]/g, (match, name: string | undefined) => {
      if (match === '{{' || match === '}}') return match.charAt(0);
      const value = name === undefined ? undefined : this.rawText(name, this.values);
      if (value !== undefined) return value;
      throw this.invalid(
        `${key} has an unknown placeholder`,
        "use the name of one of the cloud's settings as placeholder, such as {region_name}, or double the braces",
      );
    });
  }

  /** Reads a boolean; undefined if the value is absent, or neither true nor false. */
  flag(key: string): boolean | undefined {
    const value = Object.hasOwn(this.values, key) ? this.values[key] : undefined;
    if (typeof value === 'boolean') return value;
    const word = typeof value === 'string' ? value.toLowerCase() : '';
    return Object.hasOwn(BOOLEANS, word) ? BOOLEANS[word] : undefined;
  }
}
