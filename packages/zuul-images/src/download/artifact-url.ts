import { ImageError } from '@nodepool-builder/image-builder';
import type { Coding } from './unpacking.ts';

/** How the last part of an URL's path ends, and how such an object is packed. */
const SUFFIXES: Readonly<Record<string, Coding>> = { '.zst': 'zstd', '.xz': 'xz', '.gz': 'gzip' };

/**
 * What an artifact's URL stands for on the wire. `s3://bucket/key` becomes a path of the endpoint.
 *
 * @throws ImageError `invalid-configuration`
 */
export function wireUrl(url: string, s3Endpoint: string | undefined): URL {
  const parsed = URL.parse(url);
  if (parsed === null) throw unusable('it is not absolute', 'resolve it against the log URL of its build');
  if (parsed.protocol === 's3:') {
    const endpoint = URL.parse(s3Endpoint ?? '');
    if (endpoint === null)
      throw unusable(`nobody told where ${nameOf(parsed)} is`, 'set the URL of the S3 endpoint');
    endpoint.pathname = `${endpoint.pathname.replace(/\/$/, '')}/${parsed.host}${parsed.pathname}`;
    return endpoint;
  }
  if (parsed.protocol === 'http:' || parsed.protocol === 'https:') return parsed;
  throw unusable(`its scheme is ${parsed.protocol.slice(0, -1)}`, 'publish it over http, https or s3');
}

/** How an URL is called in messages: without its query, which may be a signature, and without credentials. */
export function nameOf({ protocol, host, pathname }: URL): string {
  return `${protocol}//${host}${pathname}`;
}

/** How the object is packed, by the end of its name. */
export function codingOf({ pathname }: URL): Coding | undefined {
  return SUFFIXES[/\.[^./]*$/.exec(pathname)?.[0].toLowerCase() ?? ''];
}

function unusable(reason: string, remedy: string): ImageError {
  return new ImageError(
    'invalid-configuration',
    `the URL of an artifact cannot be used: ${reason}; ${remedy}`,
  );
}
