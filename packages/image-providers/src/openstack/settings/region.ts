import { invalidSettings } from './invalid-settings.ts';
import { isMapping, type Mapping, mappingAt } from './mapping.ts';

/** One region of a cloud, and what is different in it. */
export interface Region {
  readonly name: string;
  readonly values: Mapping;
}

/** Whose regions they are, for messages. */
export interface RegionSource {
  readonly cloudName: string;
  readonly origin: string;
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
  if (region === undefined) {
    const names = regions.map(({ name }) => name).join(', ');
    throw invalidSettings(
      `cloud "${source.cloudName}" of ${source.origin} has no region "${wanted}"; its regions are ${names}`,
      'correct region-name (capitals count), or add the region to "regions" of the cloud',
    );
  }
  return region;
}

function regionsOf(source: RegionSource): readonly Region[] {
  const { cloud, profile } = source;
  const listed = cloud.regions ?? cloud.region_name ?? profile.regions ?? profile.region_name ?? [];
  // Older files name several regions in one text, with commas.
  const entries: readonly unknown[] = Array.isArray(listed) ? listed : String(listed).split(',');
  return entries.map((entry) => regionOf(entry, source)).filter(({ name }) => name !== '');
}

function regionOf(entry: unknown, source: RegionSource): Region {
  if (!isMapping(entry)) return { name: String(entry ?? '').trim(), values: {} };
  const keys = Object.keys(entry);
  if (!keys.includes('name') || keys.some((key) => key !== 'name' && key !== 'values')) {
    throw invalidSettings(
      `cloud "${source.cloudName}" of ${source.origin} has an entry of "regions" that is no region`,
      'write a name, or a mapping with "name" and "values"',
    );
  }
  return { name: String(entry.name), values: mappingAt(entry, 'values') };
}
