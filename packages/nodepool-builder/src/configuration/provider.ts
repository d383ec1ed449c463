import type { ImageImport } from '@nodepool-builder/provider-openstack';
import type { ProviderCloud, ProviderConfiguration } from './configuration.ts';
import { toFilterEntries } from './image-filters.ts';
import { lastOfEachName } from './normalise.ts';
import { programPath } from './program-path.ts';
import { isMapping, toText } from './scalar.ts';
import type { ProviderSource } from './source.ts';

const DEFAULT_TEMPLATE = 'template-{image.name}-{timestamp}';

/**
 * One entry of `providers` with its defaults.
 *
 * @param cloud of `type: openstack`
 * @param absolute makes a path absolute
 */
export function toProvider(
  source: ProviderSource,
  cloud: ProviderCloud | undefined,
  absolute: (path: string) => string,
): ProviderConfiguration {
  const imageType = source['image-type'] ?? cloud?.settings?.imageFormat ?? 'qcow2';
  const templateHostname = source['template-hostname'] ?? DEFAULT_TEMPLATE;
  const rate = source.rate ?? 1;
  return {
    name: source.name,
    type: source.type === 'directory' ? 'directory' : 'openstack',
    imageType,
    ...(source.directory !== undefined && { directory: absolute(source.directory) }),
    ...(cloud !== undefined && { cloud }),
    rate,
    templateHostname,
    attributes: {
      ...templateAttributes(source),
      name: source.name,
      rate,
      image_type: imageType,
      template_hostname: templateHostname,
    },
    ...(source['bandwidth-limit'] !== undefined && { bandwidthLimit: source['bandwidth-limit'] }),
    ...imageImport(source),
    ...(source['image-upload-timeout'] !== undefined && {
      imageUploadTimeout: source['image-upload-timeout'],
    }),
    uploadRetryLimit: source['upload-retry-limit'] ?? 60,
    ...(source['post-upload-hook'] !== undefined && {
      postUploadHook: programPath(source['post-upload-hook'], absolute),
    }),
    pause: source.pause ?? false,
    machines: toMachines(source),
    images: lastOfEachName(source.images ?? []).map(
      ({ name, diskimage, pause = false, meta, 'image-filters': filters }) => ({
        name,
        ...(diskimage && { diskimage }),
        pause,
        meta: Object.fromEntries(Object.entries(meta ?? {}).map(([key, value]) => [key, toText(value)])),
        ...(filters && { imageFilters: toFilterEntries(filters) }),
      }),
    ),
  };
}

function toMachines(source: ProviderSource): ProviderConfiguration['machines'] {
  const { networks, pool } = source;
  const names = (Array.isArray(networks) ? networks : []).map(networkName).filter((name) => name !== '');
  return {
    ...(names.length > 0 && { networks: names }),
    ...(pool != null && { pool: toText(pool) }),
    ...(source['ipv6-preferred'] === true && { ipv6Preferred: true }),
  };
}

/** nodepool has had several ways to name a network. */
function networkName(network: unknown): string {
  if (!isMapping(network)) return toText(network);
  return toText(network['net-id'] ?? network['net-label'] ?? network.name);
}

function imageImport(source: ProviderSource): { imageImport?: ImageImport } {
  const { 'image-import': method, 'image-import-url': baseUrl = '' } = source;
  if (method === undefined) return {};
  return { imageImport: method === 'web-download' ? { method, baseUrl } : { method } };
}

/** Keys of a provider that the Python builder kept as attributes, with its defaults. */
const ATTRIBUTES: Readonly<Record<string, unknown>> = {
  'region-name': null,
  'max-servers': null,
  keypair: null,
  pool: null,
  'api-timeout': null,
  'boot-timeout': 60,
  'launch-timeout': 3600,
  'ipv6-preferred': null,
  'clean-floating-ips': null,
};

function templateAttributes(source: ProviderSource): Readonly<Record<string, unknown>> {
  const values: Readonly<Record<string, unknown>> = { ...source };
  return Object.fromEntries(
    Object.entries(ATTRIBUTES).map(([key, standard]) => [key.replaceAll('-', '_'), values[key] ?? standard]),
  );
}
