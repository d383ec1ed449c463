import { parseImportedImageId } from '@nodepool-builder/image-builder/internal';
import type { ManagerConfiguration } from '../configuration.ts';
import type { Build, ManagerState, Upload } from '../records.ts';

/**
 * Makes records for the builds of Zuul that builders have imported on their own. A build's age is its age in Zuul,
 * regardless of the import. A build with a record is not adopted again, even if it is deleted.
 *
 * @param builds by image-id
 * @param offered image-ids
 * @param now in milliseconds since 1970; later dates from Zuul's clock are set back to it
 */
export function buildsToAdopt(
  { diskimages }: Pick<ManagerConfiguration, 'diskimages'>,
  builds: ReadonlyMap<string, Build>,
  offered: Iterable<string>,
  now: number,
): readonly Build[] {
  const followers = diskimages.filter(({ isImported }) => isImported === true);
  if (followers.length === 0) return [];
  const digests = new Map(followers.map(({ name, digest }) => [name, digest]));
  const adopted: Build[] = [];
  for (const id of offered) {
    if (builds.has(id)) continue;
    const { image: diskimage = '', endTime = 0 } = parseImportedImageId(id) ?? {};
    const configuration = digests.get(diskimage);
    if (configuration === undefined) continue;
    const endedAt = Math.min(endTime, now);
    adopted.push({
      id,
      diskimage,
      state: 'ready',
      configuration,
      reason: 'Zuul built it',
      requestedAt: endedAt,
      endedAt,
      withdrawn: false,
    });
  }
  return adopted;
}

/** Finds the disk images that a user unpaused, and that the configuration no longer pauses. */
export function uselessPauses(
  { diskimages }: Pick<ManagerConfiguration, 'diskimages'>,
  { pauses }: Pick<ManagerState, 'pauses'>,
): readonly string[] {
  return diskimages
    .filter(({ name, pause }) => !pause && pauses.get(name)?.isPaused === false)
    .map(({ name }) => name);
}

/** Tolerated difference between the clocks of two hosts, in milliseconds. */
const TOLERANCE = 60_000;

/**
 * Replaces dates in the future with the present. Until such a date, nothing would be due by age, and no pause would
 * end.
 *
 * @param now in milliseconds since 1970
 */
export function correctFutureDates({ builds, uploads }: ManagerState, now: number) {
  const correct = <T extends Build | Upload>(records: ReadonlyMap<string, T>): readonly T[] =>
    [...records.values()]
      .filter(({ requestedAt, endedAt = 0 }) => Math.max(requestedAt, endedAt) > now + TOLERANCE)
      .map((record) => ({
        ...record,
        requestedAt: Math.min(record.requestedAt, now),
        ...(record.endedAt !== undefined && { endedAt: Math.min(record.endedAt, now) }),
      }));
  return { builds: correct(builds), uploads: correct(uploads) };
}
