import type { ServiceSettings } from '../cloud-settings.ts';
import { OpenStackError } from '../openstack-error.ts';

/** One address in the catalog that comes with a token. */
export interface CatalogEndpoint {
  /** The service's type: `image`, `object-store`. */
  readonly type: string;
  /** The service's name: `glance`. */
  readonly name: string | undefined;
  /** `public`, `internal` or `admin`. */
  readonly interface: string;
  readonly regionId: string | undefined;
  readonly url: string;
}

/**
 * The address of a service: the first that fits, as keystoneauth takes it.
 *
 * @throws OpenStackError `no-such-service`, with what there is instead.
 */
export function findEndpoint(
  cloud: string,
  catalog: readonly CatalogEndpoint[],
  service: ServiceSettings,
): string {
  const wanted = service.interface.replace(/URL$/, '');
  const found = catalog.find(
    (endpoint) =>
      endpoint.type === service.type &&
      endpoint.interface === wanted &&
      (service.name === undefined || endpoint.name === service.name) &&
      (service.regionName === undefined || endpoint.regionId === service.regionName),
  );
  if (found !== undefined) return found.url;
  const name = service.name === undefined ? '' : ` called ${service.name}`;
  const region = service.regionName === undefined ? '' : ` in region ${service.regionName}`;
  throw new OpenStackError(
    'no-such-service',
    `cloud ${cloud}: no ${wanted} endpoint of a service of type ${service.type}${name}${region}; ${offer(catalog, service.type)}`,
  );
}

function offer(catalog: readonly CatalogEndpoint[], type: string): string {
  if (catalog.length === 0) return 'the token came without a catalog: name the project in clouds.yaml';
  const ofType = catalog.filter((endpoint) => endpoint.type === type);
  if (ofType.length === 0) {
    const types = new Set(catalog.map((endpoint) => endpoint.type));
    return `the cloud has services of type ${[...types].toSorted().join(', ')}`;
  }
  const places = ofType.map(
    ({ name, interface: which, regionId }) => `${name ?? type} ${which} in ${regionId ?? 'no region'}`,
  );
  return `the cloud has ${[...new Set(places)].join(', ')}: correct the region or the interface in clouds.yaml`;
}

/** An address with the API's version in it: appended where the catalog has none, put right where it is another. */
export function versioned(url: string, version: string | undefined): string {
  const base = url.replace(/(?<!\/)\/+$/, '');
  if (version === undefined) return base;
  const has = new RegExp(`/${version}(\\.\\d+)?(/|$)`);
  if (has.test(new URL(base).pathname)) return base;
  return `${base.replace(/\/v\d+(\.\d+)?$/, '')}/${version}`;
}
