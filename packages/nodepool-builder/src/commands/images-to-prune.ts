import { type ImageCandidate, latestImage } from '@nodepool-builder/image-builder';

/** What of each name stays. */
export interface Retention {
  /** The newest ones that stay, however old; at least 1. */
  readonly keep: number;
  /** Milliseconds that the others stay. */
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
    const { latest, refused } = latestImage(versions, {});
    const newestFirst = [
      ...(latest === undefined ? [] : [latest]),
      ...refused.map(({ candidate }) => candidate),
    ];
    return newestFirst.slice(keep).filter((image) => now - madeAt(image).getTime() > olderThan);
  });
}

/** When it was built; where that is unknown, when it came into the provider. */
export function madeAt({ builtAt, createdAt }: ImageCandidate): Date {
  return builtAt ?? createdAt;
}
