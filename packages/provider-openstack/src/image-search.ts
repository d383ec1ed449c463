import type { CandidateOptions, ImageCandidate, ImageFilter } from '@nodepool-builder/image-builder';
import { IMAGE_TAGS, SELF } from '@nodepool-builder/image-builder/module-kit';
import { createdAt, type GlanceImage } from './glance-image.ts';
import type { ImageApi } from './image-api.ts';
import { unlessAbsent } from './openstack-error.ts';

export interface CandidateSearch extends CandidateOptions {
  readonly images: ImageApi;
  readonly signal: AbortSignal;
}

/** Lists all images of Glance that may pass the filter, each once. */
export async function findCandidates(
  filter: ImageFilter,
  { images, known = [], withRefused = false, signal }: CandidateSearch,
): Promise<readonly ImageCandidate[]> {
  const projectId = await images.projectId(signal);
  const found = new Map<string, GlanceImage>();
  for (const query of imageQueries(filter, { projectId, withRefused })) {
    for (const image of await images.find(query, signal)) found.set(image.id, image);
  }
  for (const id of known) {
    const image = found.get(id) ?? (await images.get(id, signal).catch(unlessAbsent));
    if (image !== undefined) found.set(image.id, image);
  }
  return [...found.values()].map((image) => toCandidate(image, projectId));
}

/** @param projectId undefined in a cloud without Keystone, where images have no owner */
function toCandidate(image: GlanceImage, projectId: string | undefined): ImageCandidate {
  const { id, status, tags } = image;
  const scalars = Object.entries(image).filter(([, value]) => typeof value !== 'object');
  const properties: Record<string, string> = Object.fromEntries(
    scalars.map(([name, value]) => [name, String(value)]),
  );
  const { name = '', owner, visibility, architecture } = properties;
  const { [IMAGE_TAGS.imageName]: imageName, [IMAGE_TAGS.imageId]: imageId } = properties;
  const isHidden = status === 'active' && image.os_hidden === true;
  const built = Date.parse(properties[IMAGE_TAGS.builtAt] ?? '');
  return {
    externalId: id,
    name,
    status: isHidden ? 'hidden' : status,
    isUsable: status === 'active' && !isHidden,
    isOwn: owner === projectId,
    ...(imageName !== undefined && { imageName }),
    ...(imageId !== undefined && { imageId }),
    ...(owner !== undefined && { owner }),
    ...(architecture !== undefined && { architecture }),
    ...(visibility !== undefined && { visibility }),
    tags: Array.isArray(tags) ? tags.map(String) : [],
    properties,
    createdAt: createdAt(image),
    ...(Number.isFinite(built) && { builtAt: new Date(built) }),
  };
}

/** Query of one `GET /v2/images`. */
type ImageQuery = Readonly<Record<string, string>>;

export interface QueryOptions {
  /** Of the credentials; undefined in a cloud without Keystone. */
  readonly projectId: string | undefined;
  /** Whether to include all images with a matching name. */
  readonly withRefused: boolean;
}

/**
 * Queries whose answers contain all images that pass the filter, and as few others as possible: Glance supports neither
 * globs nor several values of one key.
 */
export function imageQueries(filter: ImageFilter, { projectId, withRefused }: QueryOptions): ImageQuery[] {
  const names = filter.name?.every(isPlain) === true ? filter.name : undefined;
  const named = { ...single('name', names), ...single(IMAGE_TAGS.imageName, filter.imageName) };
  const passing = ownerQueries(filter, projectId).flatMap((owner) =>
    visibilityQueries(filter).map((visibility) => ({
      ...propertyQuery(filter),
      ...single('architecture', filter.architecture),
      ...single('tag', filter.tag),
      ...named,
      ...owner,
      ...visibility,
      status: 'active',
    })),
  );
  return withRefused ? [...passing, named, { ...named, os_hidden: 'true' }] : passing;
}

function ownerQueries({ owner = [SELF] }: ImageFilter, projectId: string | undefined): ImageQuery[] {
  const ids = owner.map((id) => (id === SELF ? projectId : id));
  return ids.map((id) => (id === undefined ? {} : { owner: id }));
}

/** By default, Glance does not list the community images of other projects. */
function visibilityQueries({ visibility }: ImageFilter): ImageQuery[] {
  return visibility?.map((value) => ({ visibility: value })) ?? [{}];
}

function propertyQuery({ properties: wanted = new Map() }: ImageFilter): ImageQuery {
  const custom = [...wanted].filter(([name]) => !PARAMETERS.has(name));
  return Object.assign({}, ...custom.map(([name, values]) => single(name, values)));
}

function single(name: string, values: readonly string[] | undefined): ImageQuery {
  const [value, ...others] = values ?? [];
  return value === undefined || others.length > 0 ? {} : { [name]: value };
}

/** Whether a name is neither a glob nor an operator of Glance, such as `in:`. */
function isPlain(name: string): boolean {
  return !/[*?:]/.test(name);
}

/** Parameters of Glance's list that do not select a property by its value. */
const PARAMETERS: ReadonlySet<string> = new Set(
  (
    'changes-since checksum container_format created_at deleted direct_url disk_format file id is_public limit ' +
    'locations marker member_status min_disk min_ram name os_hash_algo os_hash_value os_hidden owner protected schema ' +
    'self size size_max size_min sort sort_dir sort_key status stores tag tags updated_at virtual_size visibility'
  ).split(' '),
);
