import { type ImageCandidate, latestImage } from '@nodepool-builder/image-builder';

/** What of each name stays. */
export interface Retention {
  /** The newest ones that stay, however old; at least 1. */
  readonly keep: number;
  /** Milliseconds that the others stay; 0 if the number alone decides. */
  readonly olderThan: number;
}

/** The images that need not stay: of each name those behind the newest ones, in the order of `latest`. */
export function imagesToPrune(
  images: readonly ImageCandidate[],
  { keep, olderThan }: Retention,
  now: number,
): readonly ImageCandidate[] {
  const byName = Map.groupBy(images, ({ imageName }) => imageName);
  return [...byName.values()].flatMap((versions) => {
    const { latest, refused } = latestImage(versions, {}, now);
    const newestFirst = [
      ...(latest === undefined ? [] : [latest]),
      ...refused.map(({ candidate }) => candidate),
    ];
    return newestFirst.slice(keep).filter((image) => now - madeAt(image, now).getTime() >= olderThan);
  });
}

/**
 * When it was built. Where that is unknown or in the future, when it came into the provider, and now if that is in the
 * future too.
 */
export function madeAt({ builtAt, createdAt }: ImageCandidate, now: number): Date {
  const past = [builtAt, createdAt].find((date) => date !== undefined && date.getTime() <= now);
  return past ?? new Date(now);
}
