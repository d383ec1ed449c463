import { ImageError } from './errors.ts';

/** A word of a shell's command line: bare characters, escapes, and quoted parts, in any combination. */
const WORD = /(?:[^\s'"\\]|\\[\s\S]|'[^']*'|"(?:[^"\\]|\\[\s\S])*")+/y;
const PART = /\\([\s\S])|'([^']*)'|"((?:[^"\\]|\\[\s\S])*)"|([^'"\\]+)/g;

/**
 * Splits text into words at white space, with quotes and backslashes like in a POSIX shell.
 *
 * @param what kind of text, for the error
 * @throws ImageError `invalid-configuration` for a quote that is not closed
 */
export function shellWords(text: string, what: string): string[] {
  const words: string[] = [];
  let position = 0;
  for (;;) {
    position += /^\s*/.exec(text.slice(position))?.[0].length ?? 0;
    if (position === text.length) return words;
    WORD.lastIndex = position;
    const word = WORD.exec(text)?.[0];
    if (word === undefined || !/^\s?$/.test(text[position + word.length] ?? '')) {
      throw new ImageError(
        'invalid-configuration',
        `${what} ${JSON.stringify(text)} has an unmatched quote or backslash; close or remove it`,
      );
    }
    words.push(unquote(word));
    position += word.length;
  }
}

function unquote(word: string): string {
  return word.replace(
    PART,
    (_, escaped?: string, single?: string, double?: string, bare?: string) =>
      // Between double quotes, a backslash is literal except before one of these.
      escaped ?? single ?? double?.replace(/\\(["\\$`])/g, '$1') ?? bare ?? '',
  );
}
