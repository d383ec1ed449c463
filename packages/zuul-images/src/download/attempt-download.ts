import { join } from 'node:path';
import { ImageError } from '@nodepool-builder/image-builder';
import { type RetryLimits, runTaskGroup, steadyProgress } from '@nodepool-builder/image-builder/module-kit';
import type { ArtifactRequest, DownloadOptions } from './artifact-request.ts';
import { codingOf, nameOf } from './artifact-url.ts';
import { DiskSpaceGuard } from './disk-space-guard.ts';
import { fetchRanges, fetchWhole } from './fetch-object.ts';
import type { HttpSource } from './http-source.ts';
import { Spool } from './spool.ts';
import { findObject, type RangedObject, type WholeObject } from './stored-object.ts';
import { type UnpackedObject, type Unpacking, unpackObject } from './unpack-object.ts';
import { tooLarge } from './unpacked-file.ts';
import type { Coding } from './unpacking.ts';

const DEFAULT_LARGEST_SIZE = 256 * 2 ** 30;

const DEFAULT_CONNECTIONS = 4;

/** Settings of {@link attemptDownload}. */
export interface AttemptOptions extends DownloadOptions {
  readonly signal: AbortSignal;
  readonly retryPolicy: RetryLimits;
  /** Called with the number of bytes received. */
  readonly onBytes: (bytes: number) => void;
}

/** A finished file under a temporary name. */
export interface Attempt {
  readonly file: string;
  readonly object: UnpackedObject;
}

/**
 * Fetches and unpacks an object. It resumes an earlier attempt at the same object.
 *
 * @throws TransientFailure if all has to begin anew
 * @throws ImageError
 * @throws the signal's reason
 */
export async function attemptDownload(
  source: HttpSource,
  state: string,
  request: ArtifactRequest,
  options: AttemptOptions,
): Promise<Attempt> {
  const name = nameOf(source.url);
  const found = await findObject(source, options.signal);
  let spool: Spool | undefined;
  try {
    const coding = codingOnTheWire(source.url, found.contentEncoding);
    const { expected = {}, largestSize = DEFAULT_LARGEST_SIZE, leaveFree = 0 } = request;
    const limit = Math.min(largestSize, expected.size ?? largestSize);
    if (coding === undefined && (found.size ?? 0) > limit) throw tooLarge(name, limit);
    spool = 'validator' in found ? await Spool.resume(state, found) : await Spool.begin(state, found.size);
    const space = new DiskSpaceGuard(state, leaveFree);
    await space.check((found.size ?? 0) - spool.present);
    const length = found.size ?? 'an unknown number of';
    options.logger?.info(`downloading ${name}: ${length} bytes, ${spool.present} there already`);
    const file = coding === undefined ? spool.path : join(state, 'unpacked');
    return {
      file,
      object: await transfer({ source, found, spool, coding, file, name, limit, space }, request, options),
    };
  } finally {
    if ('answer' in found) found.answer.response.destroy();
    await spool?.close();
  }
}

/** Inputs of {@link transfer}. */
interface Transfer extends Pick<Unpacking, 'spool' | 'coding' | 'file' | 'name' | 'limit' | 'space'> {
  readonly source: HttpSource;
  readonly found: RangedObject | WholeObject;
}

async function transfer(
  { found, ...parts }: Transfer,
  { connections = DEFAULT_CONNECTIONS, expected = {} }: ArtifactRequest,
  { signal: download, onBytes, onProgress, retryPolicy, logger }: AttemptOptions,
): Promise<UnpackedObject> {
  const fetch = async (signal: AbortSignal): Promise<void> => {
    const fetching = { ...parts, onBytes, signal };
    if ('answer' in found) await fetchWhole(found.answer, fetching);
    else await fetchRanges({ ...fetching, object: found, connections, retryPolicy, logger });
  };
  const progress = onProgress && steadyProgress(onProgress);
  const unpack = async (signal: AbortSignal): Promise<UnpackedObject> =>
    await unpackObject({
      ...parts,
      withCrc32: expected.crc32 !== undefined,
      signal,
      onProgress: (done) => progress?.({ done, total: found.size ?? 0 }),
    });
  const [, object] = await runTaskGroup<[unknown, UnpackedObject]>(download, [fetch, unpack]);
  return object;
}

/** Codings by the value of Content-Encoding. */
const ENCODINGS: Readonly<Record<string, Coding>> = { gzip: 'gzip', 'x-gzip': 'gzip', zstd: 'zstd' };

/**
 * Coding of the received bytes. Some servers repeat the suffix of a file as its encoding; others compress a file
 * themselves.
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
