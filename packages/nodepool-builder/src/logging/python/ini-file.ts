import { ConfigurationError, type LocatedDiagnostic } from '../../yaml/diagnostic.ts';

interface IniValue {
  text: string;
  readonly line: number;
}

/** A section of an INI file. Keys are in lower case. */
export class IniSection {
  readonly #file: string;
  /** Line of its header. */
  readonly #line: number;
  readonly values = new Map<string, IniValue>();

  constructor(file: string, line: number) {
    this.#file = file;
    this.#line = line;
  }

  /** Returns a value without interpolation. */
  raw(key: string): string | undefined {
    return this.values.get(key)?.text;
  }

  /** Returns a value. Each `%(key)s` is replaced by that value of the section, and `%%` by `%`. */
  text(key: string): string | undefined {
    return this.raw(key)?.replaceAll(/%(?:%|\((\w+)\)s)/g, (whole, other: string | undefined) =>
      other === undefined ? '%' : (this.raw(other.toLowerCase()) ?? whole),
    );
  }

  /** @throws ConfigurationError */
  required(key: string): string {
    const text = this.text(key);
    if (text === undefined) throw this.error(key, `the section lacks "${key}"`);
    return text;
  }

  error(key: string, reason: string, options?: ErrorOptions): ConfigurationError {
    return iniError(this.#file, this.#lineOf(key), reason, options);
  }

  warning(key: string, reason: string, remedy: string): LocatedDiagnostic {
    return { line: this.#lineOf(key), column: 1, severity: 'warning', reason, remedy };
  }

  #lineOf(key: string): number {
    return this.values.get(key)?.line ?? this.#line;
  }
}

export function iniError(
  file: string,
  line: number,
  reason: string,
  options?: ErrorOptions,
): ConfigurationError {
  const remedy = 'correct it, or write YAML';
  return new ConfigurationError(file, [{ line, column: 1, severity: 'error', reason, remedy }], options);
}

/**
 * Parses an INI file like Python's `configparser`: `key = value` or `key: value`, with longer values on indented lines,
 * and comments after `#` or `;`. Every section has the values of `[DEFAULT]`.
 *
 * @param file path for messages
 * @throws ConfigurationError
 */
export function parseIni(file: string, text: string): ReadonlyMap<string, IniSection> {
  const sections = new Map<string, IniSection>();
  let section: IniSection | undefined;
  let value: IniValue | undefined;
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    if (/^\s*(?:[#;]|$)/.test(raw)) continue;
    if (/^\s/.test(raw) && value !== undefined) {
      value.text = `${value.text}\n${withoutComment(raw)}`.trim();
      continue;
    }
    const line = index + 1;
    const name = /^\[([^\]]+)\]/.exec(raw)?.[1];
    if (name !== undefined) {
      section = sections.get(name) ?? new IniSection(file, line);
      sections.set(name, section);
      value = undefined;
      continue;
    }
    const [, key, written = ''] = /^\s*([^:=\s][^:=]*)[:=](.*)$/.exec(raw) ?? [];
    if (section === undefined || key === undefined) {
      throw iniError(file, line, 'expected a [section], then "key = value" lines');
    }
    value = { text: withoutComment(written), line };
    section.values.set(key.trimEnd().toLowerCase(), value);
  }
  const defaults = sections.get('DEFAULT')?.values ?? [];
  for (const { values } of sections.values()) {
    for (const [key, standard] of defaults) if (!values.has(key)) values.set(key, standard);
  }
  return sections;
}

/** Removes a comment after a value, like Python 2: after a space and a semicolon. */
function withoutComment(text: string): string {
  return text.replace(/\s;.*$/, '').trim();
}
