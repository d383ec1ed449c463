/** An image-id and the build time that the builder reported. */
export interface DatedImage {
  readonly imageId?: string | undefined;
  /** Milliseconds since 1970; undefined if unknown. */
  readonly builtAt: number | undefined;
}

/** Image-ids with a number: nodepool's `12`, and the manager's `debian-0000000012-k7f3q2xa`. */
const NUMBERED = /^(?:(.+)-)?(\d{1,12})(?:-([a-z2-7]{8}))?$/s;

/** An image with its sort keys, compared in this order. Higher is newer. */
interface Ranked<T> {
  readonly image: T;
  /** The latest date, not in the future, of this image and of images with lower numbers. */
  believed: number;
  /** The latest of all these dates. */
  highest: number;
  readonly number: number;
}

/**
 * Sorts images by their builds, newest first, even if clocks were wrong. Images of one store are ordered by their
 * numbers. A future date counts as the date of the preceding number, and without a number as older than all past dates.
 *
 * @param now milliseconds since 1970
 * @param tie order of images of equal age. Default: the given order.
 */
export function newestBuildFirst<T>(
  images: readonly T[],
  describe: (image: T) => DatedImage,
  now: number,
  tie: (one: T, other: T) => number = () => 0,
): readonly T[] {
  if (images.length < 2) return images;
  return rank(images, describe, now)
    .toSorted((one, other) => byRank(one, other) || tie(one.image, other.image))
    .map(({ image }) => image);
}

/**
 * Compares images like {@link newestBuildFirst}.
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
  const ranks = new Map(rank(images, describe, now).map((ranked) => [ranked.image, ranked]));
  return (one, other) => {
    const [first, second] = [ranks.get(one), ranks.get(other)];
    return first === undefined || second === undefined ? 0 : byRank(first, second);
  };
}

function byRank(one: Ranked<unknown>, other: Ranked<unknown>): number {
  return other.believed - one.believed || other.highest - one.highest || other.number - one.number;
}

function rank<T>(images: readonly T[], describe: (image: T) => DatedImage, now: number): Ranked<T>[] {
  const all: Ranked<T>[] = [];
  const numbered = new Map<string, Ranked<T>[]>();
  for (const image of images) {
    const { imageId = '', builtAt: claimed = 0 } = describe(image);
    const parts = NUMBERED.exec(imageId);
    const ranked = {
      image,
      believed: claimed > now ? 0 : claimed,
      highest: claimed,
      number: Number(parts?.[2] ?? 0),
    };
    all.push(ranked);
    if (parts === null) continue;
    const series = `${parts[3] ?? ''}-${parts[1] ?? ''}`;
    const others = numbered.get(series);
    if (others === undefined) numbered.set(series, [ranked]);
    else others.push(ranked);
  }
  for (const series of numbered.values()) {
    let [believed, highest] = [0, 0];
    // Copies of one image share one number.
    for (const ranked of series.toSorted(
      (one, other) => one.number - other.number || one.highest - other.highest,
    )) {
      believed = Math.max(believed, ranked.believed);
      highest = Math.max(highest, ranked.highest);
      ranked.believed = believed;
      ranked.highest = highest;
    }
  }
  return all;
}
