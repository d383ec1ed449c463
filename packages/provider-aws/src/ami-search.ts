import type { Filter, Image } from '@aws-sdk/client-ec2';
import type { ImageFilter } from '@nodepool-builder/image-builder';
import {
  type CloudImage,
  cloudImage,
  IMAGE_TAGS,
  OWN_ACCOUNT,
  unlessAbsent,
} from '@nodepool-builder/image-builder/plugin';
import { exactFilter, listImages, readTags } from './amis.ts';
import type { AwsRegion } from './aws-session.ts';
import { architectureName } from './aws-upload.ts';

/**
 * Finds all AMIs that may pass a filter, possibly with duplicates. Includes AMIs of other owners only if the filter
 * names the owner.
 */
export async function searchImages(
  region: AwsRegion,
  filter: ImageFilter,
  withRefused: boolean,
  signal: AbortSignal,
): Promise<readonly CloudImage<Image>[]> {
  const { owner: owners = [OWN_ACCOUNT] } = filter;
  const search = async (Owners: string[], Filters: Filter[]): Promise<CloudImage<Image>[]> => {
    const query = { Owners, Filters, IncludeDeprecated: withRefused };
    const images = await listImages(region, query, signal);
    return images.map((image) => describeImage(image, Owners.includes(OWN_ACCOUNT)));
  };
  const filters = [...nameFilters(filter), ...(withRefused ? [] : conditions(filter))];
  const found: CloudImage<Image>[] = [];
  if (owners.includes(OWN_ACCOUNT) || withRefused) {
    found.push(...(await search([OWN_ACCOUNT], filters)));
    const imported = filters.flatMap((one) =>
      one.Name === 'name' ? [{ ...one, Name: 'tag:Name' }, IMPORTED] : one,
    );
    if (filter.name) found.push(...(await search([OWN_ACCOUNT], imported)));
  }
  const others = owners.filter((owner) => owner !== OWN_ACCOUNT);
  if (others.length > 0) found.push(...(await search(others, filters)));
  return found;
}

/** Finds an AMI by id, whoever owns it. */
export async function findImage(
  region: AwsRegion,
  id: string,
  signal: AbortSignal,
): Promise<CloudImage<Image> | undefined> {
  for (const Owners of [[OWN_ACCOUNT], undefined]) {
    const query = { ImageIds: [id], IncludeDeprecated: true, ...(Owners && { Owners }) };
    const images = await listImages(region, query, signal).catch(unlessAbsent);
    const image = images?.find(({ State }) => State !== 'deregistered');
    if (image !== undefined) return describeImage(image, Owners !== undefined);
  }
  return undefined;
}

/** AMIs from ImportImage, which chooses their names. Their requested name is in a tag. */
const IMPORTED = { Name: 'name', Values: ['import-ami-*'] };

function nameFilters({ name, imageName }: ImageFilter): Filter[] {
  return [
    ...(name ? [{ Name: 'name', Values: name.map((glob) => glob.replaceAll('\\', '\\\\')) }] : []),
    ...exact(`tag:${IMAGE_TAGS.imageName}`, imageName),
  ];
}

/** Properties that are not tags. */
const FACTS: ReadonlySet<string> = new Set([
  'image-type',
  'root-device-type',
  'virtualization-type',
  'hypervisor',
]);

/** Returns the filter conditions that AWS can evaluate. */
function conditions({ architecture, properties = new Map() }: ImageFilter): Filter[] {
  const tags = [...properties].flatMap(([name, values]) =>
    exact(FACTS.has(name) ? name : `tag:${name}`, values),
  );
  return [
    { Name: 'state', Values: ['available'] },
    ...exact('architecture', architecture?.map(architectureName)),
    ...tags,
  ];
}

function exact(name: string, values: readonly string[] | undefined): Filter[] {
  return values === undefined ? [] : [exactFilter(name, values)];
}

/** Returns AWS's data about an image, by AWS filter name. */
function facts(image: Image): Record<string, string> {
  const { ImageType, RootDeviceType, VirtualizationType, Hypervisor } = image;
  return Object.fromEntries(
    Object.entries({
      'image-type': ImageType,
      'root-device-type': RootDeviceType,
      'virtualization-type': VirtualizationType,
      hypervisor: Hypervisor,
    }).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

/** Describes an AMI. @param isOwn whether it belongs to the account of the credentials */
export function describeImage(image: Image, isOwn = true): CloudImage<Image> {
  const properties = readTags(image.Tags);
  const { ImageId: id = '', State: state = '', DeprecationTime: deprecated } = image;
  const { Name: given = id } = image;
  const isDeprecated = deprecated !== undefined && Date.parse(deprecated) <= Date.now();
  return cloudImage({
    native: image,
    externalId: id,
    name: given.startsWith('import-ami-') ? (properties.Name ?? given) : given,
    status: isDeprecated && state === 'available' ? 'deprecated' : state,
    isComplete: state === 'available',
    isUsable: state === 'available' && !isDeprecated,
    isOwn,
    ...(image.OwnerId !== undefined && { owner: image.OwnerId }),
    ...(image.Architecture !== undefined && { architecture: image.Architecture }),
    visibility: image.Public === true ? 'public' : 'private',
    properties: { ...facts(image), ...properties },
    createdAt: new Date(image.CreationDate ?? 0),
  });
}
