/**
 * Whether a whole text matches a glob: `*` matches any number of characters, `?` exactly one. Matching is
 * case-sensitive and takes time proportional to the product of both lengths at most.
 */
export function matchesGlob(text: string, pattern: string): boolean {
  const [characters, wanted] = [Array.from(text), Array.from(pattern)];
  let at = 0;
  let next = 0;
  let star = -1; // index of the last `*`
  let taken = 0; // end of the text that it matches
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
