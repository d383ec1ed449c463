/**
 * Whether a text is what a pattern says from its beginning to its end: `*` is any characters or none, `?` is one, and
 * upper case is not lower case. The time it takes is bounded by the product of both lengths, whatever the pattern.
 */
export function matchesGlob(text: string, pattern: string): boolean {
  const [characters, wanted] = [Array.from(text), Array.from(pattern)];
  let at = 0;
  let next = 0;
  let star = -1; // the last `*` that was passed, and how far the text has been given to it
  let taken = 0;
  while (at < characters.length) {
    if (wanted[next] === '*') {
      star = next;
      taken = at;
      next += 1;
    } else if (wanted[next] === '?' || wanted[next] === characters[at]) {
      at += 1;
      next += 1;
    } else if (star >= 0) {
      taken += 1;
      at = taken;
      next = star + 1;
    } else {
      return false;
    }
  }
  return wanted.slice(next).every((character) => character === '*');
}
