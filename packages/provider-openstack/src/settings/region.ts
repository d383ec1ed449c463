import { invalidSettings } from './invalid-settings.ts';
import { isMapping, type Mapping, mappingAt } from './mapping.ts';

/** One region of a cloud, and what is different in it. */
export interface Region {
  readonly name: string;
  readonly values: Mapping;
}

/** Whose regions they are. */
export interface RegionSource {
  /** The cloud and its files, for messages. */
  readonly where: string;
  /** The cloud's own settings. */
  readonly cloud: Mapping;
  readonly profile: Mapping;
}

/**
 * The region that was asked for, or the cloud's first. A cloud that lists no regions has whichever one asks for.
 *
 * @throws OpenStackError `invalid-settings` for a region that is not among those of the cloud
 */
export function chosenRegion(wanted: string | undefined, source: RegionSource): Region | undefined {
  const regions = regionsOf(source);
  if (!wanted) return regions[0];
  if (regions.length === 0) return { name: wanted, values: {} };
  const region = regions.find(({ name }) => name === wanted);
  if (region !== undefined) return region;
  const names = regions.map(({ name }) => name).join(', ');
  throw invalidSettings(
    `${source.where} has no region "${wanted}"; its regions are ${names}`,
    'correct region-name (capitals count), or add the region to "regions" of the cloud',
  );
}

function regionsOf(source: RegionSource): readonly Region[] {
  const { cloud, profile } = source;
  const listed = cloud.regions ?? cloud.region_name ?? profile.regions ?? profile.region_name ?? [];
  // Older files name several regions in one text, with commas.
  const entries: unknown = typeof listed === 'string' ? listed.split(',') : listed;
  if (!Array.isArray(entries)) throw noRegions(source);
  return entries.map((entry) => regionOf(entry, source));
}

function regionOf(entry: unknown, source: RegionSource): Region {
  if (typeof entry === 'string') return { name: entry, values: {} };
  if (!isMapping(entry) || typeof entry.name !== 'string') throw noRegions(source);
  if (Object.keys(entry).some((key) => key !== 'name' && key !== 'values')) throw noRegions(source);
  return { name: entry.name, values: mappingAt(entry, 'values') };
}

function noRegions({ where }: RegionSource): Error {
  return invalidSettings(
    `${where} has "regions" that are no list of regions`,
    'write a name for each, or a mapping with "name" and "values" and nothing else',
  );
}
