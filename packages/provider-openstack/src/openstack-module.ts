import {
  type CloudImageEntry,
  type FilterEntry,
  ImageError,
  type ObjectSchema,
  type ProviderEntry,
  type ProviderModule,
} from '@nodepool-builder/image-builder';
import { scalarText } from '@nodepool-builder/image-builder/internal';
import { combineFilters } from '@nodepool-builder/image-builder/plugin';
import type { CloudSettings } from './cloud-settings.ts';
import { propertyPath } from './image-api.ts';
import type { InstanceSettings } from './instance/instance-cloud.ts';
import { OpenStackInstanceProvider } from './instance/openstack-instance-provider.ts';
import { OpenStackProvider } from './openstack-provider.ts';
import { cloudSettingsFiles } from './settings/cloud-files.ts';
import { loadCloudSettings } from './settings/load-cloud-settings.ts';
import { metadataProblems } from './upload/image-properties.ts';
import type { ImageImport } from './upload/upload-method.ts';

/** JSON schema type of a text that YAML may parse as a number. */
const SCALAR = ['string', 'number', 'null'] as const;

const SETTINGS = {
  type: 'object',
  description: 'images and instances in an OpenStack cloud',
  properties: {
    cloud: {
      type: ['string', 'null'],
      description:
        'Name of a cloud in `clouds.yaml`. Default: the cloud in `OS_CLOUD` or the other `OS_*` variables. The ' +
        "credentials below override that cloud's credentials.",
    },
    'region-name': { type: SCALAR, description: "Name of one of the cloud's regions." },
    'auth-url': { type: SCALAR, description: 'Keystone URL.' },
    username: { type: SCALAR, description: 'User name.' },
    password: { type: SCALAR, description: 'User password.' },
    'project-id': { type: SCALAR, description: 'Project id.' },
    'project-name': { type: SCALAR, description: 'Project name.' },
    'api-timeout': {
      type: ['number', 'null'],
      exclusiveMinimum: 0,
      description: "Time limit for a response, in seconds. Default: the cloud's.",
    },
    rate: {
      type: 'number',
      minimum: 0,
      default: 1,
      description: 'Seconds between the starts of two requests. An upload does not delay other requests.',
    },
    'image-import': {
      enum: ['glance-direct', 'web-download'],
      description:
        "Import method of Glance. Default: a plain PUT of the file, or a task if the cloud's profile requires one.",
    },
    'image-import-url': {
      type: 'string',
      minLength: 1,
      description: 'With `image-import: web-download`: URL of `images-dir` from which the cloud downloads.',
    },
    'upload-retry-timeout': {
      type: 'number',
      minimum: 0,
      default: 20,
      description:
        'Seconds from the first failure of an upload until its last retry begins; then the job fails. 0: no retry. The ' +
        'manager requests the upload again (`manager.retry-delay`).',
    },
    networks: {
      description:
        'Networks of an instance, for `on-instance`, each by name or as a mapping with `net-id`, `net-label` or ' +
        '`name`. Default: the only network of the project.',
    },
    pool: {
      type: SCALAR,
      description: "Network for the instance's floating IP. Default: no floating IP.",
    },
    'ipv6-preferred': {
      description: 'Whether to connect by IPv6 to an instance with an IPv6 address. Default: false.',
    },
  },
} as const satisfies ObjectSchema;

type Entry = ProviderEntry<typeof SETTINGS>;
type ImportKeys = Pick<Entry, 'image-import' | 'image-import-url'>;
type InstanceKeys = Pick<Entry, 'networks' | 'pool' | 'ipv6-preferred'>;

/** Retries of an upload, until `upload-retry-timeout` ends them. */
const RETRY = { attempts: Number.POSITIVE_INFINITY, delay: 5 };

/** `type: openstack`: images in Glance, instances in Nova. */
export const OPENSTACK_MODULE: ProviderModule<typeof SETTINGS, CloudSettings> = {
  type: 'openstack',
  settings: SETTINGS,
  *check(entry) {
    for (const [position, { meta }] of entry.images.entries()) {
      for (const { name, ...problem } of metadataProblems(meta)) {
        yield { pointer: `/images/${position}/meta${propertyPath(name)}`, ...problem };
      }
    }
    if (entry['image-import'] !== 'web-download' || entry['image-import-url'] !== undefined) return;
    yield {
      pointer: '',
      reason: 'lacks the key "image-import-url", which image-import: web-download needs',
      remedy: 'set it to the URL of images-dir from which the cloud downloads',
    };
  },
  files: cloudSettingsFiles,
  async prepare(entry, host) {
    const provider = {
      name: entry.name,
      username: scalarText(entry.username),
      password: scalarText(entry.password),
      authUrl: scalarText(entry['auth-url']),
      projectId: scalarText(entry['project-id']),
      projectName: scalarText(entry['project-name']),
      apiTimeout: entry['api-timeout'] ?? undefined,
    };
    const request = {
      provider,
      cloud: scalarText(entry.cloud),
      regionName: scalarText(entry['region-name']),
    };
    const prepared = await loadCloudSettings(request, host);
    return { prepared, imageType: prepared.imageFormat };
  },
  images: {
    open(entry, { prepared, formats, logger, onTask }) {
      return new OpenStackProvider({
        name: entry.name,
        formats,
        settings: prepared,
        logger,
        session: { rate: entry.rate, onTask },
        retry: { ...RETRY, limit: entry['upload-retry-timeout'] },
        imageImport: imageImport(entry),
        uploadTimeout: entry['image-upload-timeout'],
        bandwidthLimit: entry['bandwidth-limit'],
      });
    },
    cloudImages: {
      properties: {
        'image-name': {
          type: SCALAR,
          description:
            "Exact name of the image. Default: the entry's name, if the entry has neither `image-filters` nor `image-id`.",
        },
      },
      filters: cloudImageFilters,
    },
  },
  instances: {
    open(entry, { prepared, logger, owner, scope }) {
      return new OpenStackInstanceProvider({
        ...instanceSettings(entry),
        name: entry.name,
        owner,
        scope,
        settings: prepared,
        logger,
        session: { rate: entry.rate },
      });
    },
  },
};

function cloudImageFilters(image: CloudImageEntry): readonly FilterEntry[] {
  const { name: entry, 'image-name': configured, 'image-filters': filters = [] } = image;
  const name = scalarText(configured) ?? (filters.length === 0 ? entry : undefined);
  if (name === undefined) return filters;
  if (!/[*?]/.test(name)) return combineFilters([{ name: 'name', values: [name] }], filters);
  const reason = `"${name}" is a pattern, but image-name is exact; use a filter "name"`;
  throw new ImageError('invalid-filter', reason);
}

/** Reads the import method from the keys `image-import` and `image-import-url`. */
export function imageImport(entry: ImportKeys): ImageImport | undefined {
  const { 'image-import': method, 'image-import-url': baseUrl = '' } = entry;
  return method === 'web-download' ? { method, baseUrl } : method && { method };
}

export function instanceSettings(entry: InstanceKeys): InstanceSettings {
  const names = (Array.isArray(entry.networks) ? entry.networks : []).map(networkName);
  const networks = names.filter((name) => name !== undefined);
  return {
    networks: networks.length > 0 ? networks : undefined,
    pool: scalarText(entry.pool),
    ipv6Preferred: entry['ipv6-preferred'] === true,
  };
}

/** Returns the network name from any of the forms that nodepool accepts. */
function networkName(network: unknown): string | undefined {
  if (typeof network !== 'object' || network === null) return scalarText(network);
  const { 'net-id': id, 'net-label': label, name } = network as Readonly<Record<string, unknown>>;
  return scalarText(id ?? label ?? name);
}
