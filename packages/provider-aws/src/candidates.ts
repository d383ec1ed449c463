import type { Filter, Image } from '@aws-sdk/client-ec2';
import {
  type CandidateOptions,
  type ImageCandidate,
  type ImageFilter,
  splitTags,
} from '@nodepool-builder/image-builder';
import { IMAGE_TAGS, readImageTags, SELF, unlessAbsent } from '@nodepool-builder/image-builder/module-kit';
import { listImages, readTags } from './amis.ts';
import type { AwsRegion } from './aws-session.ts';
import { architectureName } from './aws-upload.ts';

interface CandidateSearch extends CandidateOptions {
  readonly region: AwsRegion;
  readonly signal: AbortSignal;
}

/** Lists all AMIs that may pass the filter, each once. Those of other owners only if the filter names them. */
export async function findCandidates(
  filter: ImageFilter,
  { region, known = [], withRefused = false, signal }: CandidateSearch,
): Promise<readonly ImageCandidate[]> {
  const { owner: owners = [SELF] } = filter;
  const found = new Map<string, ImageCandidate>();
  const add = async (isOwn: boolean, query: Parameters<typeof listImages>[1]): Promise<void> => {
    for (const image of await listImages(region, { IncludeDeprecated: withRefused, ...query }, signal)) {
      const { ImageId: id = '' } = image;
      if (!found.has(id)) found.set(id, toCandidate(image, isOwn));
    }
  };
  const filters = [...nameFilters(filter), ...(withRefused ? [] : conditions(filter))];
  if (owners.includes(SELF) || withRefused) {
    await add(true, { Owners: [SELF], Filters: filters });
    const imported = filters.flatMap((one) =>
      one.Name === 'name' ? [{ ...one, Name: 'tag:Name' }, IMPORTED] : one,
    );
    if (filter.name) await add(true, { Owners: [SELF], Filters: imported });
  }
  const others = owners.filter((owner) => owner !== SELF);
  if (others.length > 0) await add(false, { Owners: others, Filters: filters });
  for (const id of known.filter((one) => !found.has(one))) {
    const query = { ImageIds: [id], IncludeDeprecated: true };
    await add(true, { ...query, Owners: [SELF] }).catch(unlessAbsent);
    if (!found.has(id) && others.length > 0)
      await add(false, { ...query, Owners: others }).catch(unlessAbsent);
  }
  return [...found.values()];
}

/** AMIs that ImportImage made: it chooses their name, and ours is a tag. */
const IMPORTED = { Name: 'name', Values: ['import-ami-*'] };

function nameFilters({ name, imageName }: ImageFilter): Filter[] {
  return [
    ...(name ? [{ Name: 'name', Values: name.map((glob) => glob.replaceAll('\\', '\\\\')) }] : []),
    ...exact(`tag:${IMAGE_TAGS.imageName}`, imageName),
  ];
}

/** Properties that are no tags. */
const FACTS: ReadonlySet<string> = new Set([
  'image-type',
  'root-device-type',
  'virtualization-type',
  'hypervisor',
]);

/** The conditions that AWS can judge. */
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
  if (values === undefined) return [];
  return [{ Name: name, Values: values.map((value) => value.replaceAll(/[*?\\]/g, String.raw`\$&`)) }];
}

/** What AWS knows of an image, by the names of its filters. */
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

function toCandidate(image: Image, isOwn: boolean): ImageCandidate {
  const properties = readTags(image.Tags);
  const tagged = isOwn ? readImageTags(properties) : undefined;
  const { ImageId: id = '', State: state = '', DeprecationTime: deprecated } = image;
  const { Name: given = id } = image;
  const name = given.startsWith('import-ami-') ? (properties.Name ?? given) : given;
  const isDeprecated = deprecated !== undefined && Date.parse(deprecated) <= Date.now();
  return {
    externalId: id,
    name,
    status: isDeprecated && state === 'available' ? 'deprecated' : state,
    isUsable: state === 'available' && !isDeprecated,
    isOwn,
    ...(tagged && { imageName: tagged.imageName, imageId: tagged.imageId }),
    ...(image.OwnerId !== undefined && { owner: image.OwnerId }),
    ...(image.Architecture !== undefined && { architecture: image.Architecture }),
    visibility: image.Public === true ? 'public' : 'private',
    tags: splitTags(properties.tags),
    properties: { ...facts(image), ...properties },
    createdAt: new Date(image.CreationDate ?? 0),
    ...(tagged?.builtAt && { builtAt: tagged.builtAt }),
  };
}
