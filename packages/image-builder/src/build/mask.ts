/** Shorter texts are not masked: they occur too often by chance. */
const SHORTEST = 4;

const MASK = '***';

/**
 * Creates a function that replaces secrets by `***`.
 *
 * @param secrets texts to replace; each line of a text with several lines is replaced separately
 */
export function createMask(secrets: readonly string[] = []): (text: string) => string {
  const hidden = secrets
    .flatMap((secret) => secret.split(/[\r\n]+/))
    .map((line) => line.trim())
    .flatMap((line) => [line, inSingleQuotes(line)])
    .filter((line) => line.length >= SHORTEST)
    // The longest first: a shorter one may be part of it.
    .toSorted((one, other) => other.length - one.length);
  return (text) => hidden.reduce((masked, secret) => masked.replaceAll(secret, MASK), text);
}

/** Text between the single quotes in a shell's trace (`set -x`). */
function inSingleQuotes(text: string): string {
  return text.replaceAll("'", String.raw`'\''`);
}

/** Control characters except tab, line separators, and characters that change the writing direction. */
const CONTROL = /(?!\t)\p{Cc}|\p{Zl}|\p{Zp}|\p{Bidi_Control}/gu;

/** Replaces control characters by their codes, so that a terminal does not interpret them. */
export function visible(text: string): string {
  return text.replace(CONTROL, (character) => {
    const code = character.charCodeAt(0).toString(16);
    return code.length > 2 ? `\\u${code.padStart(4, '0')}` : `\\x${code.padStart(2, '0')}`;
  });
}
