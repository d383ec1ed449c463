import { ImageError } from '@nodepool-builder/image-builder';

/** URL schemes of artifacts. */
const SCHEMES: readonly string[] = ['http:', 'https:', 's3:'];

/**
 * Returns the absolute URL of an artifact. Zuul joins a relative URL to the build's `log_url`, if the build has one at
 * that time. Otherwise it stores the relative URL.
 *
 * @throws Error with the reason; it never contains the query, which may be a signature
 */
export function artifactUrl(url: string, logUrl: string | undefined): string {
  const absolute = URL.parse(url) ?? joined(url, logUrl);
  if (!SCHEMES.includes(absolute.protocol)) {
    throw new Error(`its URL begins with ${absolute.protocol}, not with http:, https: or s3:`);
  }
  if (absolute.username !== '' || absolute.password !== '') {
    throw new Error('its URL contains a user name or a password');
  }
  return absolute.href;
}

function joined(url: string, logUrl: string | undefined): URL {
  if (logUrl === undefined) throw new Error('its URL is relative, and the build has no log_url');
  // The logs of a build are a directory, even if the URL has no trailing slash.
  const base = `${logUrl.replace(/[?#].*/s, '').replace(/(?<!\/)\/*$/, '')}/`;
  const absolute = URL.parse(url, base);
  if (absolute === null) throw new Error('its URL is invalid');
  return absolute;
}

/**
 * Returns the name of a URL in messages and records: without credentials, and without the query, which may be a
 * signature.
 */
export function nameOf(url: URL | string): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}

/**
 * Returns the URL for requests. `s3://bucket/key` becomes a path of the endpoint.
 *
 * @param url result of {@link artifactUrl}
 * @throws ImageError `invalid-configuration`
 */
export function wireUrl(url: string, s3Endpoint: string | undefined): URL {
  const parsed = new URL(url);
  if (parsed.protocol !== 's3:') return parsed;
  if (s3Endpoint === undefined) {
    const reason = `the endpoint of ${nameOf(parsed)} is unknown; set s3-endpoint`;
    throw new ImageError('invalid-configuration', `the URL of an artifact cannot be used: ${reason}`);
  }
  const endpoint = new URL(s3Endpoint);
  endpoint.pathname = `${endpoint.pathname.replace(/\/$/, '')}/${parsed.host}${parsed.pathname}`;
  return endpoint;
}
