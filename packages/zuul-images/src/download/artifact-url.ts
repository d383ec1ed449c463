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
 * @throws ImageError `invalid-configuration`
 */
export function wireUrl(url: string, s3Endpoint: string | undefined): URL {
  const parsed = URL.parse(url);
  if (parsed === null) throw unusable('it is not absolute', 'resolve it against the log URL of its build');
  if (parsed.protocol === 's3:') {
    const endpoint = URL.parse(s3Endpoint ?? '');
    if (endpoint === null) throw unusable(`the endpoint of ${nameOf(parsed)} is unknown`, 'set s3-endpoint');
    endpoint.pathname = `${endpoint.pathname.replace(/\/$/, '')}/${parsed.host}${parsed.pathname}`;
    return endpoint;
  }
  if (SCHEMES.includes(parsed.protocol)) return parsed;
  throw unusable(`its scheme is ${parsed.protocol.slice(0, -1)}`, 'publish it over http, https or s3');
}

function unusable(reason: string, remedy: string): ImageError {
  return new ImageError(
    'invalid-configuration',
    `the URL of an artifact cannot be used: ${reason}; ${remedy}`,
  );
}
