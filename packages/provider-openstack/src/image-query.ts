import type { ImageFilter } from '@nodepool-builder/image-builder';
import { SELF } from '@nodepool-builder/image-builder/module-kit';
import { IMAGE_NAME } from './upload/image-properties.ts';

/** The query of one `GET /v2/images`. */
export type ImageQuery = Readonly<Record<string, string>>;

/** What {@link imageQueries} depends on besides the filter. */
export interface QueryOptions {
  /** Of the credentials in use; undefined in a cloud without Keystone. */
  readonly projectId: string | undefined;
  /** Whether images with a name that fits are asked for whatever else they are. */
  readonly withRefused: boolean;
}

/**
 * The queries that have among their answers all images that pass the filter, and as few others as Glance can do: it
 * knows neither globs nor several values of one key, apart from asking several times.
 */
export function imageQueries(filter: ImageFilter, { projectId, withRefused }: QueryOptions): ImageQuery[] {
  const names = filter.name?.every(isPlain) === true ? filter.name : undefined;
  const named = { ...only('name', names), ...only(IMAGE_NAME, filter.imageName) };
  const passing = owners(filter, projectId).flatMap((owner) =>
    visibilities(filter).map((visibility) => ({
      ...properties(filter),
      ...only('architecture', filter.architecture),
      ...only('tag', filter.tag),
      ...named,
      ...owner,
      ...visibility,
      status: 'active',
    })),
  );
  return withRefused ? [...passing, named, { ...named, os_hidden: 'true' }] : passing;
}

function owners({ owner = [SELF] }: ImageFilter, projectId: string | undefined): ImageQuery[] {
  const ids = owner.map((id) => (id === SELF ? projectId : id));
  return ids.map((id) => (id === undefined ? {} : { owner: id }));
}

/** Without one, Glance leaves out the community images of others. */
function visibilities({ visibility }: ImageFilter): ImageQuery[] {
  return visibility?.map((value) => ({ visibility: value })) ?? [{}];
}

function properties({ properties: wanted = new Map() }: ImageFilter): ImageQuery {
  const own = [...wanted].filter(([name]) => !GLANCE_WORDS.has(name));
  return Object.assign({}, ...own.map(([name, values]) => only(name, values)));
}

function only(name: string, values: readonly string[] | undefined): ImageQuery {
  const [value, ...others] = values ?? [];
  return value === undefined || others.length > 0 ? {} : { [name]: value };
}

/** No glob, and nothing that Glance takes for an operator, as `in:`. */
function isPlain(name: string): boolean {
  return !/[*?:]/.test(name);
}

/** What means something else to a list of Glance than a property with that name. */
const GLANCE_WORDS: ReadonlySet<string> = new Set(
  (
    'changes-since checksum container_format created_at deleted direct_url disk_format file id is_public limit ' +
    'locations marker member_status min_disk min_ram name os_hash_algo os_hash_value os_hidden owner protected schema ' +
    'self size size_max size_min sort sort_dir sort_key status stores tag tags updated_at virtual_size visibility'
  ).split(' '),
);
