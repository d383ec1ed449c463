import { CloudError } from '@nodepool-builder/image-builder/plugin';
import type { ServiceSettings } from '../cloud-settings.ts';

/** An endpoint in the catalog of a token. */
export interface CatalogEndpoint {
  /** Type of the service: `image`, `object-store`. */
  readonly type: string;
  /** Name of the service: `glance`. */
  readonly name: string | undefined;
  /** `public`, `internal` or `admin`. */
  readonly interface: string;
  readonly regionId: string | undefined;
  /** URL of the endpoint; undefined if the catalog contains null or an invalid value. */
  readonly url: string | undefined;
}

/**
 * Returns the URL of a service: the first match, as in keystoneauth.
 *
 * @throws CloudError `no-such-service`, listing the services of the cloud
 */
export function findEndpoint(
  cloud: string,
  catalog: readonly CatalogEndpoint[],
  service: ServiceSettings,
): string {
  const wanted = service.interface.replace(/URL$/, '');
  const found = catalog.filter(
    (endpoint) =>
      endpoint.type === service.type &&
      endpoint.interface === wanted &&
      (service.name === undefined || endpoint.name === service.name) &&
      (service.regionName === undefined || endpoint.regionId === service.regionName),
  );
  const url = found.find((endpoint) => endpoint.url !== undefined)?.url;
  if (url !== undefined) return url;
  const name = service.name === undefined ? '' : ` called ${service.name}`;
  const region = service.regionName === undefined ? '' : ` in region ${service.regionName}`;
  const what = `${wanted} endpoint of a service of type ${service.type}${name}${region}`;
  throw new CloudError(
    'no-such-service',
    found.length === 0
      ? `cloud ${cloud}: no ${what}; ${alternatives(catalog, service.type)}`
      : `cloud ${cloud}: the ${what} has no URL in the catalog; ask the operator of the cloud to add it`,
  );
}

function alternatives(catalog: readonly CatalogEndpoint[], type: string): string {
  if (catalog.length === 0) return 'the token has no catalog: name the project in clouds.yaml';
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

/** Returns a URL with the API version: appended if the URL has none, replaced if it has another. */
export function versioned(url: string, version: string | undefined): string {
  const base = url.replace(/(?<!\/)\/+$/, '');
  if (version === undefined) return base;
  const has = new RegExp(`/${version}(\\.\\d+)?(/|$)`);
  if (has.test(new URL(base).pathname)) return base;
  return `${base.replace(/\/v\d+(\.\d+)?$/, '')}/${version}`;
}

/**
 * Parses a URL from the settings or the catalog.
 *
 * @throws CloudError `invalid-settings`
 */
export function settingsUrl(cloud: string, key: string, value: string): URL {
  const url = URL.parse(value);
  if (url !== null && /^https?:$/.test(url.protocol)) return url;
  // A password may precede an @, and a signature may follow a question mark.
  const shown = /[@?]/.test(value) ? '' : `: ${JSON.stringify(value.slice(0, 200))}`;
  throw new CloudError(
    'invalid-settings',
    `cloud ${cloud}: ${key} is not a URL${shown}; it must begin with http:// or https://`,
  );
}
