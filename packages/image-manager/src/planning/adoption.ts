import { parseImportedImageId } from '@nodepool-builder/image-builder/module-kit';
import type { ManagerConfiguration } from '../configuration.ts';
import type { Build } from '../records.ts';

/**
 * Makes records for the builds of Zuul that builders have imported on their own. A build's age is its age in Zuul,
 * whenever it was imported. A build with a record is not adopted again, even if it is deleted.
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
