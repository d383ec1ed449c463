import leven from 'leven';

/** Maximum number of edits between a misspelt name and the intended one. */
const MAX_EDITS = 2;

/** Minimum number of letters for each edit, because two edits change too much of a short name. */
const LETTERS_PER_EDIT = 3;

/** Returns the known name that was probably meant; undefined if none is similar. */
export function nearestName(name: string, known: Iterable<string>): string | undefined {
  const [nearest] = Array.from(known, (other) => ({ other, edits: editsBetween(other, name) })).toSorted(
    (one, two) => one.edits - two.edits,
  );
  const max = Math.min(MAX_EDITS, Math.floor(name.length / LETTERS_PER_EDIT));
  return nearest !== undefined && nearest.edits <= max ? nearest.other : undefined;
}

/** Counts edits. Two swapped letters count as one. */
function editsBetween(one: string, two: string): number {
  let at = 0;
  while (at < one.length && one[at] === two[at]) at += 1;
  const swapped = one.slice(0, at) + one.charAt(at + 1) + one.charAt(at) + one.slice(at + 2);
  return swapped === two && one !== two ? 1 : leven(one, two);
}
