import { join, resolve } from 'node:path';
import type { ImageFormat } from '@nodepool-builder/image-builder';
import { isImageFormat } from '@nodepool-builder/image-builder/internal';
import type { CloudSettings, ServiceSettings } from '../cloud-settings.ts';
import { chooseCloud, type SettingsRequest } from './choose-cloud.ts';
import { cloudAuth } from './cloud-auth.ts';
import type { SettingsPlace } from './cloud-files.ts';
import { type MergedCloud, mappingAt } from './merged-cloud.ts';

const DEFAULT_API_TIMEOUT = 60;

/**
 * Finds, merges and reads the settings of a provider's cloud, as os-client-config 1.22 does. The layers are the vendor
 * profile, the cloud in `clouds.yaml` with `secure.yaml` or in `OS_*`, its region, and the provider.
 *
 * @throws CloudError `invalid-settings` for an unknown cloud or region, and for missing or invalid values
 */
export async function loadCloudSettings(
  request: SettingsRequest,
  place: SettingsPlace,
): Promise<CloudSettings> {
  const cloud = await chooseCloud(request, place);
  const image = serviceSettings('image', cloud);
  return {
    name: cloud.name,
    auth: cloudAuth(cloud, request.provider, image.endpointOverride),
    image,
    objectStore: serviceSettings('object-store', cloud),
    compute: serviceSettings('compute', cloud),
    network: serviceSettings('network', cloud),
    tls: tlsSettings(cloud, place),
    apiTimeout: request.provider.apiTimeout ?? timeoutOf(cloud) ?? DEFAULT_API_TIMEOUT,
    imageFormat: imageFormat(cloud),
    imageApiUseTasks: cloud.flag('image_api_use_tasks') ?? false,
    disableVendorAgent: vendorProperties(cloud),
  };
}

/** Reads the keys of a service, such as `image_interface`, and the keys for the whole cloud. */
function serviceSettings(type: string, cloud: MergedCloud): ServiceSettings {
  const prefix = type.replace('-', '_');
  const name = cloud.text(`${prefix}_service_name`);
  const regionName = cloud.text(`${prefix}_region_name`) ?? cloud.text('region_name');
  const endpointOverride = cloud.text(`${prefix}_endpoint_override`) ?? cloud.text(`${prefix}_endpoint`);
  return {
    type: cloud.text(`${prefix}_service_type`) ?? type,
    interface: interfaceOf(`${prefix}_`, cloud) ?? interfaceOf('', cloud) ?? 'public',
    ...(name === undefined ? {} : { name }),
    ...(regionName === undefined ? {} : { regionName }),
    ...(endpointOverride === undefined ? {} : { endpointOverride }),
  };
}

const INTERFACES: readonly string[] = ['public', 'internal', 'admin'];

/** Reads the interface. `endpoint_type` and `publicURL` are names from Keystone v2. */
function interfaceOf(prefix: string, cloud: MergedCloud): string | undefined {
  const named = cloud.text(`${prefix}endpoint_type`) ?? cloud.text(`${prefix}interface`);
  if (named === undefined) return undefined;
  const name = named.replace(/URL$/, '');
  if (INTERFACES.includes(name)) return name;
  throw cloud.invalid(`${prefix}interface does not exist`, `write one of ${INTERFACES.join(', ')}`);
}

function tlsSettings(cloud: MergedCloud, { home, cwd }: SettingsPlace): CloudSettings['tls'] {
  const path = (key: string): string | undefined => {
    const named = cloud.text(key);
    if (named === undefined) return undefined;
    return resolve(cwd, named === '~' || named.startsWith('~/') ? join(home, named.slice(1)) : named);
  };
  const verify = verifyOf(cloud);
  const caFile = path('cacert');
  const certFile = path('cert');
  const keyFile = certFile === undefined ? undefined : path('key');
  if (!verify && caFile !== undefined)
    cloud.warn('cacert has no effect because certificates are not verified');
  return {
    verify,
    ...(caFile === undefined ? {} : { caFile }),
    ...(certFile === undefined ? {} : { certFile }),
    ...(keyFile === undefined ? {} : { keyFile }),
  };
}

function verifyOf(cloud: MergedCloud): boolean {
  if (cloud.flag('insecure') === true) return false;
  const verify = cloud.flag('verify');
  // A value that is neither true nor false must not turn verification off.
  if (verify === undefined && (cloud.values.verify ?? '') !== '') {
    throw cloud.invalid('verify is neither true nor false', 'set cacert to a certificate file');
  }
  return verify ?? true;
}

/** Reads the timeout of all services: `api_timeout`, or the `…_timeout` of one service in an older file. */
function timeoutOf(cloud: MergedCloud): number | undefined {
  const names = Object.keys(cloud.values);
  const key = names.findLast((name) => name.endsWith('_timeout') && name !== 'api_timeout') ?? 'api_timeout';
  const text = cloud.text(key);
  if (text === undefined) return undefined;
  const seconds = Number(text);
  if (seconds > 0 && Number.isFinite(seconds)) return seconds;
  throw cloud.invalid(`${key} is not a number of seconds`, 'write a number greater than 0');
}

function imageFormat(cloud: MergedCloud): ImageFormat {
  const format = cloud.text('image_format') ?? 'qcow2';
  if (isImageFormat(format)) return format;
  throw cloud.invalid('image_format is unknown', 'write qcow2, raw, vhd or another image format');
}

function vendorProperties(cloud: MergedCloud): Record<string, string> {
  const entries = Object.entries(mappingAt(cloud.values, 'disable_vendor_agent'));
  return Object.fromEntries(entries.map(([key, value]) => [key, asText(value)]));
}

/** Glance accepts only text. Booleans get Python's spelling, as in openstacksdk. */
function asText(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  return String(value);
}
