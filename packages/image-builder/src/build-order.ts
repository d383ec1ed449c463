/** An image-id and the build time that the builder reported. */
export interface DatedImage {
  readonly imageId?: string | undefined;
  /** Milliseconds since 1970; undefined if unknown. */
  readonly builtAt: number | undefined;
}

/** Image-ids with a number: nodepool's `12`, and `debian-0000000012-k7f3q2xa` of the manager. */
const NUMBERED = /^(?:(.+)-)?(\d{1,12})(?:-([a-z2-7]{8}))?$/s;

interface Numbered {
  readonly number: number;
  readonly claimed: number;
}

/** The oldest first. Copies of one image have one number. */
function byNumber(one: Numbered, other: Numbered): number {
  return one.number - other.number || one.claimed - other.claimed;
}

/** Sort keys, compared in this order. Higher is newer. */
type Rank = readonly [believed: number, claimed: number, number: number];

const UNKNOWN: Rank = [0, 0, 0];

/**
 * Orders images by their builds, the newest first, even if clocks were wrong. Images of one store are ordered by their
 * numbers. A date in the future counts as the date of the preceding number, and without a number as older than all past
 * dates.
 *
 * @param images all images to compare
 * @param now milliseconds since 1970
 * @returns a comparison function for `toSorted`
 */
export function byBuild<T>(
  images: readonly T[],
  describe: (image: T) => DatedImage,
  now: number,
): (one: T, other: T) => number {
  const ranks = new Map<T, Rank>();
  const numbered = new Map<string, (Numbered & { readonly image: T })[]>();
  for (const image of images) {
    const { imageId = '', builtAt: claimed = 0 } = describe(image);
    const parts = NUMBERED.exec(imageId);
    if (parts === null) {
      ranks.set(image, [claimed > now ? 0 : claimed, claimed, 0]);
    } else {
      const series = `${parts[3] ?? ''}-${parts[1] ?? ''}`;
      const each = { image, claimed, number: Number(parts[2]) };
      const others = numbered.get(series);
      if (others === undefined) numbered.set(series, [each]);
      else others.push(each);
    }
  }
  for (const series of numbered.values()) {
    let [believed, highest] = UNKNOWN;
    for (const { image, claimed, number } of series.toSorted(byNumber)) {
      if (claimed <= now) believed = Math.max(believed, claimed);
      highest = Math.max(highest, claimed);
      ranks.set(image, [believed, highest, number]);
    }
  }
  return (one, other) => {
    const [first, second] = [ranks.get(one) ?? UNKNOWN, ranks.get(other) ?? UNKNOWN];
    return second[0] - first[0] || second[1] - first[1] || second[2] - first[2];
  };
}
