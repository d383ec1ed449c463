import { OpenStackError } from '../openstack-error.ts';

/**
 * A URL out of the settings or the catalog.
 *
 * @throws OpenStackError `invalid-settings`.
 */
export function settingsUrl(cloud: string, key: string, value: string): URL {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new OpenStackError(
      'invalid-settings',
      `cloud ${cloud}: ${key} is no URL: ${JSON.stringify(value.slice(0, 200))}; it must begin with http:// or https://`,
    );
  }
  return url;
}
