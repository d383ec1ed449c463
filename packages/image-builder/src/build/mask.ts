/** Minimum length of a masked text, because shorter ones occur too often by chance. */
export const MIN_SECRET_LENGTH = 4;

const MASK = '***';

/**
 * Creates a function that replaces secrets with `***`.
 *
 * @param secrets texts to replace; each line of a text with several lines is replaced separately
 */
export function createMask(secrets: readonly string[] = []): (text: string) => string {
  const hidden = secrets
    .flatMap((secret) => secret.split(/[\r\n]+/))
    .map((line) => line.trim())
    .flatMap((line) => [line, ...quoted(line)])
    .filter((line) => line.length >= MIN_SECRET_LENGTH)
    // Longest first, because a shorter one may be part of it.
    .toSorted((one, other) => other.length - one.length);
  return (text) => hidden.reduce((masked, secret) => masked.replaceAll(secret, MASK), text);
}

/**
 * Returns the forms in which a shell quotes a text: in a trace (`set -x`), in `declare -p`, by `printf %q`, and as
 * `$'…'` outside UTF-8.
 */
function quoted(text: string): readonly string[] {
  const escaped = text.replaceAll(/['\\]/g, String.raw`\$&`).replaceAll(/[\p{Cc}]/gu, control);
  return [
    text.replaceAll("'", String.raw`'\''`),
    text.replaceAll(/["$`\\]/g, String.raw`\$&`),
    escaped,
    escaped.replaceAll(/[^\p{ASCII}]/gu, (character) => [...Buffer.from(character)].map(octal).join('')),
    text.replaceAll(/[ '"\\|&;()<>!{}*[\]?^$`,]/g, String.raw`\$&`), // printf %q
  ];
}

const ESCAPES: Readonly<Record<string, string>> = {
  '\u0007': 'a',
  '\b': 'b',
  '\t': 't',
  '\v': 'v',
  '\f': 'f',
  '\u001b': 'E',
};

function control(character: string): string {
  const letter = ESCAPES[character];
  return letter === undefined ? octal(character.charCodeAt(0)) : `\\${letter}`;
}

function octal(byte: number): string {
  return `\\${byte.toString(8).padStart(3, '0')}`;
}

/** Control characters except tab, line separators, and characters that change the writing direction. */
const CONTROL = /(?!\t)\p{Cc}|\p{Zl}|\p{Zp}|\p{Bidi_Control}/gu;

/** Replaces control characters with their codes, so that a terminal does not interpret them. */
export function visible(text: string): string {
  return text.replace(CONTROL, (character) => {
    const code = character.charCodeAt(0).toString(16);
    return code.length > 2 ? `\\u${code.padStart(4, '0')}` : `\\x${code.padStart(2, '0')}`;
  });
}
