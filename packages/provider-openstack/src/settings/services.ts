import type { ServiceSettings } from '../cloud-settings.ts';
import type { MergedCloud } from './merged-cloud.ts';

/** The services that we use, as the catalog and the keys of `clouds.yaml` call them. */
export type ServiceType = 'image' | 'object-store' | 'compute' | 'network';

const INTERFACES: readonly string[] = ['public', 'internal', 'admin'];

/**
 * Where a service is, from the keys that begin with its type (`image_interface`) and from those of the whole cloud.
 *
 * @throws OpenStackError `invalid-settings` for an interface that does not exist
 */
export function serviceSettings(type: ServiceType, cloud: MergedCloud): ServiceSettings {
  const prefix = type.replace('-', '_');
  const name = cloud.text(`${prefix}_service_name`);
  const regionName = cloud.text(`${prefix}_region_name`) ?? cloud.text('region_name');
  const override = endpointOverride(type, cloud);
  return {
    type: cloud.text(`${prefix}_service_type`) ?? type,
    interface: interfaceOf(`${prefix}_`, cloud) ?? interfaceOf('', cloud) ?? 'public',
    ...(name === undefined ? {} : { name }),
    ...(regionName === undefined ? {} : { regionName }),
    ...(override === undefined ? {} : { endpointOverride: override }),
  };
}

/** The service's address, if the settings fix it. */
export function endpointOverride(type: ServiceType, cloud: MergedCloud): string | undefined {
  const prefix = type.replace('-', '_');
  return cloud.text(`${prefix}_endpoint_override`) ?? cloud.text(`${prefix}_endpoint`);
}

/** `endpoint_type` and `publicURL` are how it was written in the days of Keystone v2. */
function interfaceOf(prefix: string, cloud: MergedCloud): string | undefined {
  const named = cloud.text(`${prefix}endpoint_type`) ?? cloud.text(`${prefix}interface`);
  if (named === undefined) return undefined;
  const name = named.replace(/URL$/, '');
  if (INTERFACES.includes(name)) return name;
  throw cloud.fault(`${prefix}interface does not exist`, `write one of ${INTERFACES.join(', ')}`);
}
