/** The value of a Python literal. A name such as `sys.stdout` stays a name. */
export type PythonValue =
  | string
  | number
  | boolean
  | null
  | PythonName
  | readonly PythonValue[]
  | ReadonlyMap<PythonValue, PythonValue>;

/** A name that is not evaluated. */
export interface PythonName {
  readonly name: string;
}

/** A text is not a valid literal. */
export class LiteralError extends Error {
  override readonly name = 'LiteralError';
}

const TOKEN =
  /\s*(?:([rRuUbB]{0,2})('''|"""|'|")|([-+]?(?:\d[\d_]*)?\.?\d+(?:[eE][-+]?\d+)?)|([A-Za-z_][\w.]*)|(\S))/y;

const CONSTANTS: Readonly<Record<string, PythonValue>> = { True: true, False: false, None: null };

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '\n': '' };

const CLOSERS: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' };

/**
 * Parses a Python literal without evaluating it: strings, numbers, tuples, lists, dictionaries and names.
 *
 * @throws LiteralError
 */
export function parseLiteral(text: string): PythonValue {
  const reader = new LiteralReader(text);
  const value = reader.value();
  reader.end();
  return value;
}

class LiteralReader {
  readonly #text: string;
  #position = 0;

  constructor(text: string) {
    this.#text = text;
  }

  value(): PythonValue {
    const [, prefix, quote, number, name, sign] = this.#next();
    if (quote !== undefined) return this.#string(quote, /r/i.test(prefix ?? ''));
    if (number !== undefined) return Number(number.replaceAll('_', ''));
    if (name !== undefined) return Object.hasOwn(CONSTANTS, name) ? (CONSTANTS[name] ?? null) : { name };
    const closer = CLOSERS[sign ?? ''];
    if (closer === undefined) throw this.#unexpected(sign);
    return sign === '{' ? new Map(this.#items(closer, () => this.#pair())) : this.#sequence(closer);
  }

  end(): void {
    if (this.#text.slice(this.#position).trim() !== '') throw this.#unexpected(this.#peek());
  }

  /** In parentheses, a single value without a comma is not a tuple. */
  #sequence(closer: string): PythonValue {
    const items = this.#items(closer, () => this.value());
    const hadComma = /,\s*\)$/.test(this.#text.slice(0, this.#position));
    return closer === ')' && items.length === 1 && !hadComma ? (items[0] ?? null) : items;
  }

  #items<T>(closer: string, read: () => T): T[] {
    const items: T[] = [];
    while (this.#peek() !== closer) {
      items.push(read());
      if (this.#peek() !== ',') break;
      this.#next();
    }
    this.#take(closer);
    return items;
  }

  #pair(): [PythonValue, PythonValue] {
    const key = this.value();
    this.#take(':');
    return [key, this.value()];
  }

  #string(quote: string, raw: boolean): string {
    const end = new RegExp(`((?:\\\\.|[^\\\\])*?)${quote}`, 'sy');
    end.lastIndex = this.#position;
    const match = end.exec(this.#text);
    if (match === null) throw new LiteralError('a quote is not closed');
    this.#position = end.lastIndex;
    const body = match[1] ?? '';
    return raw ? body : body.replaceAll(/\\(.)/gs, (whole, letter: string) => unescaped(whole, letter));
  }

  #peek(): string | undefined {
    const [sign] = this.#text.slice(this.#position).trimStart();
    return sign;
  }

  #take(wanted: string): void {
    const [token] = this.#next();
    if (token.trim() !== wanted) throw this.#unexpected(token.trim());
  }

  #next(): RegExpExecArray {
    TOKEN.lastIndex = this.#position;
    const match = TOKEN.exec(this.#text);
    if (match === null) throw this.#unexpected(undefined);
    this.#position = TOKEN.lastIndex;
    return match;
  }

  #unexpected(sign: string | undefined): LiteralError {
    return new LiteralError(sign === undefined ? 'unexpected end' : `unexpected "${sign}"`);
  }
}

function unescaped(whole: string, letter: string): string {
  return ESCAPES[letter] ?? ('\\\'"'.includes(letter) ? letter : whole);
}
