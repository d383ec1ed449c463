import leven from 'leven';

/** Max number of edits between a misspelt name and the one that was meant. */
const MAX_EDITS = 2;

/** Returns the known name that a misspelt one probably stands for; undefined if none is similar. */
export function nearestName(name: string, known: Iterable<string>): string | undefined {
  const [nearest] = Array.from(known, (other) => ({ other, edits: leven(other, name) })).toSorted(
    (one, two) => one.edits - two.edits,
  );
  // A name that is not longer than its edits has no letter in common with the other.
  return nearest !== undefined && nearest.edits <= Math.min(MAX_EDITS, name.length - 1)
    ? nearest.other
    : undefined;
}
