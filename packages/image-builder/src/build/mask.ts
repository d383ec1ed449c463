/** A shorter text stands in too many places to mean anything. */
const SHORTEST = 4;

const MASK = '***';

/**
 * Makes the function that puts `***` in the place of secrets.
 *
 * @param secrets what is not to be shown; of one with several lines each is, as each stands in a line of output
 */
export function createMask(secrets: readonly string[] = []): (text: string) => string {
  const hidden = secrets
    .flatMap((secret) => secret.split(/[\r\n]+/))
    .map((line) => line.trim())
    .flatMap((line) => [line, inSingleQuotes(line)])
    .filter((line) => line.length >= SHORTEST)
    // The longest first: another may be a part of it.
    .toSorted((one, other) => other.length - one.length);
  return (text) => hidden.reduce((masked, secret) => masked.replaceAll(secret, MASK), text);
}

/** What a shell's trace (`set -x`) shows between the quotes that it sets. */
function inSingleQuotes(text: string): string {
  return text.replaceAll("'", String.raw`'\''`);
}
