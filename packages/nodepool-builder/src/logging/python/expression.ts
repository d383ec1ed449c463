import { homedir } from 'node:os';

/** A handler's arguments cannot be evaluated, or have the wrong type. */
export class HandlerArgumentError extends Error {
  override readonly name = 'HandlerArgumentError';
}

/** Maximum nesting depth of brackets and signs. */
const MAX_DEPTH = 100;

const SPACE = /\s+|#.*/y;

/** A string, a number, or else a name with its modules, an operator or a bracket. */
const TOKEN =
  /([rbuf]{0,2})("""|'''|"|')((?:\\[\s\S]|(?!\2)[^\\])*)\2|(0[xob][\da-f_]+|(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:e[-+]?\d+)?)|[a-z_]\w*(?:\.[a-z_]\w*)*|[-+*=,:()[\]{}]/iy;

interface Token {
  /** Text of the token; empty at the end. */
  readonly text: string;
  /** Value of a literal. */
  readonly literal?: string | number;
}

/**
 * Evaluates an expression of a logging configuration like Python's `fileConfig`. It supports literals, operators, and
 * sums, products, and names that such files use. Tuples and lists become arrays.
 *
 * @throws HandlerArgumentError that names the unsupported part
 */
export function evaluate(expression: string): unknown {
  return new Parser(tokensOf(expression)).read();
}

function tokensOf(source: string): readonly Token[] {
  const tokens: Token[] = [];
  for (let at = 0; at < source.length; ) {
    SPACE.lastIndex = TOKEN.lastIndex = at;
    const [space] = SPACE.exec(source) ?? [];
    const found = space === undefined ? TOKEN.exec(source) : null;
    if (space === undefined && found === null) throw notUnderstood(source.slice(at).split(/\s/)[0] ?? '');
    if (found !== null) tokens.push(toToken(found));
    at += (space ?? found?.[0] ?? '').length;
  }
  return [...tokens, { text: '' }];
}

function toToken([text, prefix = '', quote, body = '', number]: RegExpExecArray): Token {
  if (number !== undefined) {
    const literal = Number(number.replaceAll('_', ''));
    if (/^0\d/.test(number) || Number.isNaN(literal)) throw notUnderstood(number);
    return { text, literal };
  }
  if (quote === undefined) return { text };
  if (/[bf]/i.test(prefix)) throw notUnderstood(text);
  return { text, literal: /r/i.test(prefix) ? body : body.replaceAll(ESCAPE, toCharacter) };
}

/** Escapes in a string. Any other backslash is literal. */
const ESCAPE = /\\(?:(['"\\ntr\n])|x([\da-f]{2})|u([\da-f]{4}))/gi;

const CONTROLS: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '\n': '' };

function toCharacter(_escape: string, character?: string, byte?: string, unit?: string): string {
  if (character !== undefined) return CONTROLS[character] ?? character;
  return String.fromCharCode(Number.parseInt(byte ?? unit ?? '', 16));
}

function notUnderstood(part: string): HandlerArgumentError {
  return new HandlerArgumentError(part === '' ? 'it ends too early' : `"${part}" is not understood`);
}

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  /** Reads the whole expression. A comma outside of brackets makes it a tuple. */
  read(): unknown {
    const { items, hasComma } = this.#items('');
    if (items.length === 0) throw notUnderstood('');
    return hasComma ? items : items[0];
  }

  #next(): Token {
    const token = this.#tokens[this.#at];
    this.#at += 1;
    return token ?? { text: '' };
  }

  /** Skips a token if it comes next. */
  #skip(text: string): boolean {
    const token = this.#tokens[this.#at];
    if (token?.text !== text || token.literal !== undefined) return false;
    this.#at += 1;
    return true;
  }

  #expect(text: string): void {
    if (!this.#skip(text)) throw notUnderstood(this.#next().text);
  }

  /** Reads items up to a closing token. A comma may follow the last. */
  #items<T = unknown>(
    end: string,
    read: () => T = () => this.#sum() as T,
  ): { readonly items: T[]; readonly hasComma: boolean } {
    const items: T[] = [];
    let hasComma = false;
    while (!this.#skip(end)) {
      items.push(read());
      if (this.#skip(',')) hasComma = true;
      else {
        this.#expect(end);
        break;
      }
    }
    return { items, hasComma };
  }

  #sum(): unknown {
    let left = this.#product();
    for (;;) {
      if (this.#skip('+')) {
        const right = this.#product();
        if (typeof left === 'string' && typeof right === 'string') left += right;
        else left = numberOf('+', left) + numberOf('+', right);
      } else if (this.#skip('-')) left = numberOf('-', left) - numberOf('-', this.#product());
      else return left;
    }
  }

  #product(): unknown {
    let left = this.#signed();
    while (this.#skip('*')) left = numberOf('*', left) * numberOf('*', this.#signed());
    return left;
  }

  #signed(): unknown {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw new HandlerArgumentError('it is nested too deeply');
    const value = this.#skip('-') ? -numberOf('-', this.#signed()) : this.#atom();
    this.#depth -= 1;
    return value;
  }

  #atom(): unknown {
    if (this.#skip('(')) {
      const { items, hasComma } = this.#items(')');
      return hasComma || items.length === 0 ? items : items[0];
    }
    if (this.#skip('[')) return this.#items(']').items;
    if (this.#skip('{')) return Object.fromEntries(this.#items('}', () => this.#field(':')).items);
    if (this.#skip('dict')) {
      this.#expect('(');
      return Object.fromEntries(this.#items(')', () => this.#field('=')).items);
    }
    const { text, literal } = this.#next();
    if (typeof literal === 'string') return literal + this.#adjacentText();
    if (literal !== undefined) return literal;
    if (Object.hasOwn(NAMES, text)) return NAMES[text];
    if (text === 'os.environ' && this.#skip('[')) {
      const value = process.env[textOf(this.#sum())];
      this.#expect(']');
      if (value === undefined) throw new HandlerArgumentError('a variable of os.environ is not set');
      return value;
    }
    if (Object.hasOwn(FUNCTIONS, text)) {
      this.#expect('(');
      return FUNCTIONS[text]?.(this.#items(')').items.map(textOf));
    }
    throw /^\w/.test(text) ? new HandlerArgumentError(`the name ${text} is not known`) : notUnderstood(text);
  }

  #field(separator: string): readonly [string, unknown] {
    const { text, literal = text } = this.#next();
    this.#expect(separator);
    return [String(literal), this.#sum()];
  }

  /** Reads the string literals that directly follow a string. */
  #adjacentText(): string {
    const { literal } = this.#tokens[this.#at] ?? {};
    if (typeof literal !== 'string') return '';
    this.#at += 1;
    return literal + this.#adjacentText();
  }
}

function numberOf(operator: string, value: unknown): number {
  if (typeof value === 'number') return value;
  throw new HandlerArgumentError(`"${operator}" is used with what is not a number`);
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  throw new HandlerArgumentError('something else is used as text');
}

/** The names that an expression may use: those of Python's module `logging` in which files are evaluated. */
const NAMES: Readonly<Record<string, unknown>> = {
  True: true,
  False: false,
  None: null,
  'sys.stdout': 'sys.stdout',
  'sys.stderr': 'sys.stderr',
  DEBUG: 10,
  INFO: 20,
  WARNING: 30,
  ERROR: 40,
  CRITICAL: 50,
};

function variable([name = '', other]: readonly string[]): string | null {
  return process.env[name] ?? other ?? null;
}

const FUNCTIONS: Readonly<Record<string, (texts: readonly string[]) => unknown>> = {
  'os.getenv': variable,
  'os.environ.get': variable,
  // An absolute path replaces those before it.
  'os.path.join': (paths) =>
    paths.reduce((path, next) => {
      if (next.startsWith('/') || path === '') return next;
      return path.endsWith('/') ? path + next : `${path}/${next}`;
    }, ''),
  'os.path.expanduser': ([path = '']) => path.replace(/^~(?=\/|$)/, () => process.env.HOME ?? homedir()),
};
