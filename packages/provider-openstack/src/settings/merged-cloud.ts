import type { OpenStackError } from '../openstack-error.ts';
import { invalidSettings } from './invalid-settings.ts';
import { type Mapping, mappingAt } from './mapping.ts';

/** What YAML 1.1 takes for a boolean. */
const WORDS: ReadonlyMap<string, boolean> = new Map([
  ...['true', 'yes', 'on'].map((word) => [word, true] as const),
  ...['false', 'no', 'off'].map((word) => [word, false] as const),
]);

/** One cloud after all layers were merged, and how its values are read. */
export class MergedCloud {
  readonly #values: Mapping;
  readonly #where: string;
  readonly #warn: (message: string) => void;

  /** @param where the cloud, its provider and its files, for messages */
  constructor(values: Mapping, where: string, warn: (message: string) => void) {
    this.#values = values;
    this.#where = where;
    this.#warn = warn;
  }

  /** An error about this cloud; it must not hold a value, which may be a secret. */
  fault(reason: string, remedy: string): OpenStackError {
    return invalidSettings(`${this.#where}: ${reason}`, remedy);
  }

  warn(message: string): void {
    this.#warn(`${this.#where}: ${message}`);
  }

  keys(): readonly string[] {
    return Object.keys(this.#values);
  }

  /** Whether the key is there and neither null nor empty. */
  has(key: string): boolean {
    return Object.hasOwn(this.#values, key) && (this.#values[key] ?? '') !== '';
  }

  mapping(key: string): Mapping {
    return mappingAt(this.#values, key);
  }

  /** Undefined if the key is absent, null or empty. */
  text(key: string): string | undefined {
    const raw = this.rawText(key, this.#values);
    return raw === undefined ? undefined : this.filledIn(key, raw);
  }

  /** As {@link text}, but with braces left alone: secrets may hold them. */
  rawText(key: string, values: Mapping): string | undefined {
    const value = (Object.hasOwn(values, key) ? values[key] : undefined) ?? '';
    if (typeof value === 'string') return value || undefined;
    throw this.fault(`${key} is no text`, 'write one text, in quotes if it looks like something else');
  }

  /** Replaces `{region_name}` and the like by what the cloud says there; `{{` is a brace. */
  filledIn(key: string, text: string): string {
    return text.replaceAll(/\{\{|\}\}|\{([^{}]*)\}|[{}]/g, (match, name: string | undefined) => {
      if (match === '{{' || match === '}}') return match.charAt(0);
      const value = name === undefined ? undefined : this.rawText(name, this.#values);
      if (value !== undefined) return value;
      throw this.fault(
        `${key} holds a placeholder that stands for nothing`,
        'name a setting of the cloud between the braces, as in {region_name}, or double them',
      );
    });
  }

  /** Undefined if the key is absent, or neither true nor false. */
  flag(key: string): boolean | undefined {
    const value = Object.hasOwn(this.#values, key) ? this.#values[key] : undefined;
    if (typeof value === 'boolean') return value;
    return typeof value === 'string' ? WORDS.get(value.toLowerCase()) : undefined;
  }
}
