/** A value, and the line it stands on, from 1. */
export interface IniValue {
  readonly text: string;
  readonly line: number;
}

/** The sections of a file, and their values by key in lower case. */
export type IniFile = ReadonlyMap<string, IniSection>;

/** One section. */
export interface IniSection {
  /** Where its header stands. */
  readonly line: number;
  readonly values: ReadonlyMap<string, IniValue>;
}

/** A text that is no INI file. */
export class IniError extends Error {
  override readonly name = 'IniError';
  readonly line: number;

  constructor(message: string, line: number) {
    super(message);
    this.line = line;
  }
}

/**
 * Reads an INI file as Python's `configparser` does: `key = value` or `key: value`, longer values go on in lines
 * that are indented, comments begin with `#` or `;`. The values of `[DEFAULT]` are in every section.
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
    if (option === null) throw new IniError('this is neither a [section] nor a "key = value"', line);
    if (current === undefined) throw new IniError('a [section] has to come first', line);
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

/** Python 2 knew comments behind a value, too: after a space and a semicolon. */
function withoutComment(text: string): string {
  return text.replace(/\s;.*$/, '').trim();
}

/** A value with each `%(key)s` in it replaced by that value of the section, and `%%` by `%`. */
export function interpolated({ values }: IniSection, { text }: IniValue): string {
  return text.replaceAll(/%(?:%|\((\w+)\)s)/g, (whole, key: string | undefined) =>
    key === undefined ? '%' : (values.get(key.toLowerCase())?.text ?? whole),
  );
}
