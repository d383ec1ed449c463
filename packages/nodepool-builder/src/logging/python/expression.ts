import { call, HandlerArgumentError, memberOf, NAMES, OPERATORS, power, SIGNS } from './operations.ts';

/** Maximum nesting depth of brackets and signs. */
const MAX_DEPTH = 100;

const SPACE = /\s+|#.*/y;

/** A string, a number, or else a name, an operator or a bracket. */
const TOKEN =
  /([rbuf]{0,2})("""|'''|"|')((?:\\[\s\S]|(?!\2)[^\\])*)\2|(0[xob][\da-f_]+|(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:e[-+]?\d+)?)|[a-z_]\w*|\*\*|\/\/|<<|>>|[-+*/%|^&=.,:()[\]{}]/iy;

interface Token {
  /** Text of the token; empty at the end. */
  readonly text: string;
  /** Value of a literal. */
  readonly literal?: string | number;
}

/**
 * Evaluates an expression of a logging configuration like Python's `fileConfig`. It supports literals, operators, and
 * the names that such files use. Tuples and lists become arrays.
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

  /** Reads expressions up to a closing token. A comma may follow the last. */
  #items(end: string): { readonly items: unknown[]; readonly hasComma: boolean } {
    const items: unknown[] = [];
    let hasComma = false;
    while (!this.#skip(end)) {
      items.push(this.#expression());
      if (this.#skip(',')) hasComma = true;
      else {
        this.#expect(end);
        break;
      }
    }
    return { items, hasComma };
  }

  #expression(level = 0): unknown {
    const operators = OPERATORS[level];
    if (operators === undefined) return this.#signed();
    let left = this.#expression(level + 1);
    for (;;) {
      const operator = Object.keys(operators).find((text) => this.#skip(text));
      if (operator === undefined) return left;
      left = operators[operator]?.(left, this.#expression(level + 1));
    }
  }

  #signed(): unknown {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw new HandlerArgumentError('it is nested too deeply');
    const sign = Object.keys(SIGNS).find((text) => this.#skip(text));
    const value = sign === undefined ? this.#power() : SIGNS[sign]?.(this.#signed());
    this.#depth -= 1;
    return value;
  }

  #power(): unknown {
    const base = this.#member();
    return this.#skip('**') ? power(base, this.#signed()) : base;
  }

  #member(): unknown {
    let value = this.#atom();
    for (;;) {
      if (this.#skip('.')) value = memberOf(value, this.#next().text);
      else if (this.#skip('(')) value = call(value, ...this.#arguments());
      else if (this.#skip('[')) {
        value = memberOf(value, this.#expression());
        this.#expect(']');
      } else return value;
    }
  }

  #arguments(): readonly [positional: readonly unknown[], named: Readonly<Record<string, unknown>>] {
    const positional: unknown[] = [];
    const named: [string, unknown][] = [];
    while (!this.#skip(')')) {
      if (this.#tokens[this.#at + 1]?.text === '=') {
        const { text: name } = this.#next();
        this.#expect('=');
        named.push([name, this.#expression()]);
      } else positional.push(this.#expression());
      if (this.#skip(',')) continue;
      this.#expect(')');
      break;
    }
    return [positional, Object.fromEntries(named)];
  }

  #atom(): unknown {
    if (this.#skip('(')) {
      const { items, hasComma } = this.#items(')');
      return hasComma || items.length === 0 ? items : items[0];
    }
    if (this.#skip('[')) return this.#items(']').items;
    if (this.#skip('{')) return this.#dictionary();
    const { text, literal } = this.#next();
    if (typeof literal === 'string') return literal + this.#adjacentText();
    if (literal !== undefined) return literal;
    if (Object.hasOwn(NAMES, text)) return NAMES[text];
    throw /^\w/.test(text) ? new HandlerArgumentError(`the name ${text} is not known`) : notUnderstood(text);
  }

  /** Reads the string literals that directly follow a string. */
  #adjacentText(): string {
    const { literal } = this.#tokens[this.#at] ?? {};
    if (typeof literal !== 'string') return '';
    this.#at += 1;
    return literal + this.#adjacentText();
  }

  #dictionary(): Readonly<Record<string, unknown>> {
    const fields: [string, unknown][] = [];
    while (!this.#skip('}')) {
      const key = this.#expression();
      this.#expect(':');
      fields.push([String(key), this.#expression()]);
      if (this.#skip(',')) continue;
      this.#expect('}');
      break;
    }
    return Object.fromEntries(fields);
  }
}
