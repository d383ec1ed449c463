/** A value with its line, counted from 1. */
export interface IniValue {
  readonly text: string;
  readonly line: number;
}

/** Sections by name. */
export type IniFile = ReadonlyMap<string, IniSection>;

/** A section, with its values by key in lower case. */
export interface IniSection {
  /** Line of its header. */
  readonly line: number;
  readonly values: ReadonlyMap<string, IniValue>;
}

/** A text is not a valid INI file. */
export class IniError extends Error {
  override readonly name = 'IniError';
  readonly line: number;

  constructor(message: string, line: number) {
    super(message);
    this.line = line;
  }
}

/**
 * Parses an INI file as Python's `configparser` does: `key = value` or `key: value`, with longer values on indented
 * lines, and comments after `#` or `;`. Every section has the values of `[DEFAULT]`.
 *
 * @throws IniError
 */
export function parseIni(text: string): IniFile {
  const sections = new Map<string, { line: number; values: Map<string, IniValue> }>();
  let current: Map<string, IniValue> | undefined;
  let key: string | undefined;
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = index + 1;
    if (/^\s*(?:[#;]|$)/.test(raw)) continue;
    const previous = key === undefined ? undefined : current?.get(key);
    if (/^\s/.test(raw) && key !== undefined && previous !== undefined) {
      current?.set(key, {
        text: `${previous.text}\n${withoutComment(raw.trim())}`.trim(),
        line: previous.line,
      });
      continue;
    }
    const header = /^\[([^\]]+)\]/.exec(raw);
    if (header !== null) {
      const name = header[1] ?? '';
      const section = sections.get(name) ?? { line, values: new Map<string, IniValue>() };
      sections.set(name, section);
      current = section.values;
      key = undefined;
      continue;
    }
    const option = /^\s*([^:=\s][^:=]*)[:=](.*)$/.exec(raw);
    if (option === null) throw new IniError('expected a [section] or "key = value"', line);
    if (current === undefined) throw new IniError('expected a [section] first', line);
    key = (option[1] ?? '').trimEnd().toLowerCase();
    current.set(key, { text: withoutComment((option[2] ?? '').trimStart()), line });
  }
  const { values: defaults } = sections.get('DEFAULT') ?? { values: new Map<string, IniValue>() };
  return new Map(
    [...sections].map(([name, { line, values }]) => [
      name,
      { line, values: new Map([...defaults, ...values]) },
    ]),
  );
}

/** Removes a comment after a value, as Python 2 did: after a space and a semicolon. */
function withoutComment(text: string): string {
  return text.replace(/\s;.*$/, '').trim();
}

/** Replaces each `%(key)s` in a value by that value of the section, and `%%` by `%`. */
export function interpolated({ values }: IniSection, { text }: IniValue): string {
  return text.replaceAll(/%(?:%|\((\w+)\)s)/g, (whole, key: string | undefined) =>
    key === undefined ? '%' : (values.get(key.toLowerCase())?.text ?? whole),
  );
}
