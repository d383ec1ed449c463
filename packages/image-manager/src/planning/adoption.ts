import { parseImportedImageId } from '@nodepool-builder/image-builder';
import type { ManagerConfiguration } from '../configuration.ts';
import type { Build } from '../records.ts';

/**
 * Builds of Zuul that builders have taken on their own and that are in no record. They are as old as they are in Zuul,
 * in whatever order they were taken. What a record says is deleted, or being deleted, is not taken for new.
 *
 * @param builds by image-id
 * @param offered image-ids
 * @param now in milliseconds since 1970; nothing is younger, whatever the clock of Zuul says
 */
export function buildsToAdopt(
  { diskimages }: Pick<ManagerConfiguration, 'diskimages'>,
  builds: ReadonlyMap<string, Build>,
  offered: Iterable<string>,
  now: number,
): readonly Build[] {
  const followers = diskimages.filter(({ followsZuul }) => followsZuul === true);
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
