import leven from 'leven';

/** Max number of edits between a misspelt name and the one that was meant. */
const MAX_EDITS = 2;

/** Min number of letters for each edit: of a short name, two edits leave too little. */
const LETTERS_PER_EDIT = 3;

/** Returns the known name that a misspelt one probably stands for; undefined if none is similar. */
export function nearestName(name: string, known: Iterable<string>): string | undefined {
  const [nearest] = Array.from(known, (other) => ({ other, edits: editsBetween(other, name) })).toSorted(
    (one, two) => one.edits - two.edits,
  );
  const max = Math.min(MAX_EDITS, Math.floor(name.length / LETTERS_PER_EDIT));
  return nearest !== undefined && nearest.edits <= max ? nearest.other : undefined;
}

/** Number of edits; two letters in the wrong order count as one. */
function editsBetween(one: string, two: string): number {
  let at = 0;
  while (at < one.length && one[at] === two[at]) at += 1;
  const swapped = one.slice(0, at) + one.charAt(at + 1) + one.charAt(at) + one.slice(at + 2);
  return swapped === two && one !== two ? 1 : leven(one, two);
}
