import { ImageError } from '@nodepool-builder/image-builder';
import { codingOf, nameOf } from './artifact-url.ts';
import type { Coding } from './unpacking.ts';

/** What Content-Encoding may say. */
const ENCODINGS: Readonly<Record<string, Coding>> = { gzip: 'gzip', 'x-gzip': 'gzip', zstd: 'zstd' };

/**
 * How what comes over the wire is packed. Some servers name the suffix of a file as its encoding as well, others have
 * packed a file by themselves.
 *
 * @throws ImageError `artifact-refused`
 */
export function codingOnTheWire(url: URL, contentEncoding: string | undefined): Coding | undefined {
  const bySuffix = codingOf(url);
  if (contentEncoding === undefined || contentEncoding === 'identity') return bySuffix;
  const byServer = ENCODINGS[contentEncoding];
  if (byServer !== undefined && (bySuffix ?? byServer) === byServer) return byServer;
  throw new ImageError(
    'artifact-refused',
    `${nameOf(url)} comes with the encoding "${contentEncoding}"; have the server send the file as it is stored`,
  );
}
