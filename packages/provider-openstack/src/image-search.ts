import type { ImageFilter } from '@nodepool-builder/image-builder';
import { IMAGE_TAGS, OWN_ACCOUNT } from '@nodepool-builder/image-builder/plugin';

/** Query parameters of one `GET /v2/images`. */
type ImageQuery = Readonly<Record<string, string>>;

export interface QueryOptions {
  /** Project of the credentials; undefined in a cloud without Keystone. */
  readonly projectId: string | undefined;
  /** True to include every image with a matching name, even if it fails the filter. */
  readonly withRefused: boolean;
}

/**
 * Queries that together return all images matching the filter, and few others. Glance supports neither globs nor
 * several values for one key.
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

function ownerQueries({ owner = [OWN_ACCOUNT] }: ImageFilter, projectId: string | undefined): ImageQuery[] {
  const ids = owner.map((id) => (id === OWN_ACCOUNT ? projectId : id));
  return ids.map((id) => (id === undefined ? {} : { owner: id }));
}

/** Returns one query per visibility. By default, Glance does not list the community images of other projects. */
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

/** Returns whether a name contains no glob and no Glance operator such as `in:`. */
function isPlain(name: string): boolean {
  return !/[*?:]/.test(name);
}

/** Parameters of Glance's image list that do not select a property by value. */
const PARAMETERS: ReadonlySet<string> = new Set(
  (
    'changes-since checksum container_format created_at deleted direct_url disk_format file id is_public limit ' +
    'locations marker member_status min_disk min_ram name os_hash_algo os_hash_value os_hidden owner protected schema ' +
    'self size size_max size_min sort sort_dir sort_key status stores tag tags updated_at virtual_size visibility'
  ).split(' '),
);
