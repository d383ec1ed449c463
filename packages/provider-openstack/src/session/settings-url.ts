import { OpenStackError } from '../openstack-error.ts';

/**
 * A URL out of the settings or the catalog.
 *
 * @throws OpenStackError `invalid-settings`.
 */
export function settingsUrl(cloud: string, key: string, value: string): URL {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    // Before an @ there may be a password, and behind a question mark a signature.
    const shown = /[@?]/.test(value) ? '' : `: ${JSON.stringify(value.slice(0, 200))}`;
    throw new OpenStackError(
      'invalid-settings',
      `cloud ${cloud}: ${key} is no URL${shown}; it must begin with http:// or https://`,
    );
  }
  return url;
}
