import { createHash, randomUUID } from 'node:crypto';
import {
  type BandwidthLimit,
  CloudError,
  cloudError,
  unlessAbsent,
} from '@nodepool-builder/image-builder/plugin';
import { contentDigest, type Registry } from './registry.ts';

/** Digest and length of a blob. */
export interface Blob {
  readonly digest: string;
  readonly size: number;
}

/** State of a blob upload, kept in a record. */
export interface BlobState {
  /** URL of the next request of the unfinished upload. It changes with each chunk. */
  readonly location?: string | undefined;
  /** Min chunk size that the registry accepts for the upload, in bytes, except for the last chunk. */
  readonly minChunkSize?: number | undefined;
  /** Digest and length, known once all bytes have been sent. */
  readonly blob?: Blob | undefined;
}

export interface BlobUpload {
  readonly registry: Registry;
  /** Yields the bytes of the blob, the same at each call. */
  readonly pieces: () => AsyncIterable<Buffer>;
  readonly chunkSize: number;
  /** State from an earlier process. */
  readonly state: BlobState;
  /** Records the state. */
  readonly save: (state: BlobState) => Promise<void>;
  readonly limit: BandwidthLimit | undefined;
  readonly signal: AbortSignal;
}

/** Max restarts of a blob after the registry has lost it. */
const RESTARTS = 3;

/** The registry no longer has the bytes that it confirmed. */
class UploadLostError extends Error {
  override readonly name = 'UploadLostError';
}

/** The registry, or a proxy in front of it, accepts only shorter requests. */
class ChunkTooLongError extends Error {
  override readonly name = 'ChunkTooLongError';
}

/** Chunk size that every registry should accept, in bytes. */
const SHORT_CHUNK = 65_536;

/**
 * Sends a blob in chunks. Resumes an earlier process's upload if the registry still has its bytes.
 *
 * @throws CloudError
 */
export async function uploadBlob(upload: BlobUpload): Promise<Blob> {
  const { registry, state, signal } = upload;
  if (state.blob !== undefined && (await registry.hasBlob(state.blob.digest, signal))) return state.blob;
  let session = await findSession(registry, state, signal);
  for (let restarts = 0; ; restarts += 1) {
    try {
      session ??= await startSession(upload);
      return await sendAll(upload, session);
    } catch (error) {
      signal.throwIfAborted();
      const isRefused = error instanceof ChunkTooLongError;
      if (!isRefused && !(error instanceof UploadLostError)) throw error;
      if (!isRefused && restarts >= RESTARTS) {
        const reason = `the registry lost the upload ${restarts + 1} times: ${error.message}`;
        throw cloudError('service-unavailable', `${registry.subject}: upload of a blob`, reason);
      }
      // The registry may have the upload, but with bytes other than ours.
      if (session !== undefined) await cancelUpload(registry, session.location.href, signal);
      session = undefined;
      if (isRefused) restarts -= 1;
    }
  }
}

/** Sends a blob that fits into one request, unless the registry has it. @param save records the URL of the upload */
export async function uploadSmallBlob(
  registry: Registry,
  bytes: Buffer,
  save: (location: string) => Promise<void>,
  signal: AbortSignal,
): Promise<Blob> {
  const blob = { digest: contentDigest(bytes), size: bytes.length };
  if (await registry.hasBlob(blob.digest, signal)) return blob;
  let location: URL | undefined;
  await registry.policy.run(
    async () => {
      if (location !== undefined) await cancelUpload(registry, location.href, signal);
      ({ location } = await start(registry, signal));
      await save(location.href);
      const path = withDigest(location, blob.digest);
      const headers = { 'content-type': 'application/octet-stream' };
      await registry.send({ task: 'PUT blob', method: 'PUT', path, headers, body: bytes, signal });
    },
    { signal },
  );
  return blob;
}

/** Cancels an unfinished upload. A missing upload is not an error. */
export async function cancelUpload(registry: Registry, location: string, signal: AbortSignal): Promise<void> {
  const request = {
    method: 'DELETE',
    task: 'DELETE upload',
    path: registry.resolve(location),
    signal,
  } as const;
  try {
    await registry.request(request).catch(unlessAbsent);
  } catch (error) {
    // Cancelling is optional, and Distribution permits it only to accounts that may delete. A registry discards an
    // upload that does not continue.
    if (!(error instanceof CloudError) || ![400, 401, 403, 405].includes(error.status ?? 0)) throw error;
  }
}

/** Starts and cancels an upload, to check whether the credentials may push. */
export async function tryUpload(registry: Registry, signal: AbortSignal): Promise<void> {
  const { location } = await start(registry, signal);
  await cancelUpload(registry, location.href, signal);
}

/** Requests the deletion of a nonexistent manifest, to check whether the registry permits deletions. */
export async function tryDeletion(registry: Registry, signal: AbortSignal): Promise<void> {
  await registry.deleteManifest(contentDigest(`no manifest ${randomUUID()}`), signal);
}

/** An unfinished upload in the registry. */
interface Session {
  location: URL;
  /** Number of bytes that the registry has. */
  offset: number;
  readonly minChunkSize: number;
  /**
   * True if the registry may have other bytes, because an earlier process started the upload or the registry does not
   * report its offset.
   */
  isDoubtful: boolean;
}

async function start(
  registry: Registry,
  signal: AbortSignal,
): Promise<Pick<Session, 'location' | 'minChunkSize'>> {
  const { headers } = await registry.request({
    task: 'POST upload',
    method: 'POST',
    path: 'blobs/uploads/',
    signal,
  });
  const { location } = headers;
  if (location === undefined) {
    throw cloudError(
      'bad-request',
      `${registry.subject}: POST upload`,
      'the response has no Location header',
    );
  }
  return {
    location: registry.resolve(location),
    minChunkSize: Number(headers['oci-chunk-min-length'] ?? 0) || 0,
  };
}

async function startSession({ registry, save, signal }: BlobUpload): Promise<Session> {
  const { location, minChunkSize } = await start(registry, signal);
  const session = { location, offset: 0, minChunkSize, isDoubtful: false };
  await save(stateOf(session));
  return session;
}

async function findSession(
  registry: Registry,
  { location, minChunkSize = 0 }: BlobState,
  signal: AbortSignal,
): Promise<Session | undefined> {
  if (location === undefined) return undefined;
  const found = await readSession(registry, registry.resolve(location), signal);
  if (found !== undefined) return { ...found, minChunkSize, isDoubtful: true };
  await cancelUpload(registry, location, signal); // The upload may exist, but with bytes other than its URL claims.
  return undefined;
}

/** Returns the state that the next process needs. */
function stateOf({ location, minChunkSize }: Session, blob?: Blob): BlobState {
  return { location: location.href, minChunkSize, blob };
}

/** Reads the state of an upload from the registry; undefined if the registry has lost it. */
async function readSession(
  registry: Registry,
  path: URL,
  signal: AbortSignal,
): Promise<Pick<Session, 'location' | 'offset'> | undefined> {
  try {
    const { headers } = await registry.request({ task: 'GET upload', path, signal });
    const { location, range } = headers;
    return { location: location === undefined ? path : registry.resolve(location), offset: offsetOf(range) };
  } catch (error) {
    if (isLost(error)) return undefined;
    throw error;
  }
}

/** Returns the offset after a header `Range: 0-999`. An upload without bytes has `0-0`. */
function offsetOf(range: string | undefined): number {
  const last = Number(/-(?<last>\d+)$/.exec(range ?? '')?.groups?.last ?? 0);
  return last === 0 ? 0 : last + 1;
}

/** Returns whether an error means that the registry does not know the upload, or has fewer bytes than expected. */
function isLost(error: unknown): boolean {
  return error instanceof CloudError && (error.status === 404 || error.status === 416);
}

async function sendAll(upload: BlobUpload, session: Session): Promise<Blob> {
  const { pieces, save, signal } = upload;
  const longest = Math.min(upload.chunkSize, upload.registry.maxChunkSize);
  const chunkSize = Math.max(longest, session.minChunkSize);
  const hash = createHash('sha256');
  const resumedAt = session.offset;
  let waiting: Buffer[] = [];
  let [size, length] = [0, 0];
  for await (const piece of pieces()) {
    hash.update(piece);
    const skipped = Math.min(piece.length, Math.max(0, resumedAt - size));
    size += piece.length;
    for (let at = skipped; at < piece.length; ) {
      const part = piece.subarray(at, at + chunkSize - length);
      at += part.length;
      length += part.length;
      waiting.push(part);
      if (length < chunkSize) continue;
      await sendChunk(upload, session, Buffer.concat(waiting, length));
      [waiting, length] = [[], 0];
    }
  }
  if (length > 0) await sendChunk(upload, session, Buffer.concat(waiting, length));
  if (session.offset !== size) throw new UploadLostError(`it has ${session.offset} bytes of ${size}`);
  signal.throwIfAborted();
  const blob = { digest: `sha256:${hash.digest('hex')}`, size };
  await save(stateOf(session, blob));
  await finish(upload, session, blob);
  return blob;
}

/** Sends the next bytes of the blob. After an error, sends only bytes that the registry does not have. */
async function sendChunk(upload: BlobUpload, session: Session, bytes: Buffer): Promise<void> {
  const { registry, save, limit, signal } = upload;
  const begin = session.offset;
  const end = begin + bytes.length;
  await limit?.take(bytes.length, signal);
  await registry.policy.run(
    async (attempt) => {
      if (attempt > 1) {
        const now = await readSession(registry, session.location, signal);
        if (now === undefined) throw new UploadLostError('it does not know the upload');
        if (now.offset < begin || now.offset > end)
          throw new UploadLostError(`it has ${now.offset} bytes, not ${begin}`);
        Object.assign(session, now);
      }
      if (session.offset < end) await patch(upload, session, bytes.subarray(session.offset - begin), end);
    },
    { signal },
  );
  await save(stateOf(session));
}

async function patch(
  { registry, signal }: BlobUpload,
  session: Session,
  body: Buffer,
  end: number,
): Promise<void> {
  const headers = {
    'content-type': 'application/octet-stream',
    'content-range': `${session.offset}-${end - 1}`,
  };
  const path = session.location;
  try {
    const response = await registry.send({
      task: 'PATCH blob',
      method: 'PATCH',
      path,
      headers,
      body,
      signal,
    });
    const { location, range } = response.headers;
    if (location !== undefined) session.location = registry.resolve(location);
    // Amazon ECR accepts all chunks, but always returns the range of the first one. The digest is checked at the end.
    if (range !== undefined && end > 1 && offsetOf(range) !== end) session.isDoubtful = true;
    session.offset = end;
  } catch (error) {
    if (isTooLong(error, body, session)) {
      registry.maxChunkSize = 2 ** Math.ceil(Math.log2(body.length) - 1);
      throw new ChunkTooLongError((error as Error).message);
    }
    if (isLost(error)) throw new UploadLostError((error as Error).message);
    throw error;
  }
}

/**
 * Returns whether a registry rejects the length of a first chunk: GitHub's with status 416, proxies with 413. Later
 * chunks have the same length.
 */
function isTooLong(error: unknown, { length }: Buffer, { offset, minChunkSize }: Session): boolean {
  if (!(error instanceof CloudError) || ![413, 416].includes(error.status ?? 0)) return false;
  return offset === 0 && length > Math.max(SHORT_CHUNK, minChunkSize);
}

async function finish({ registry, signal }: BlobUpload, session: Session, { digest }: Blob): Promise<void> {
  await registry.policy.run(
    async (attempt) => {
      if (attempt > 1 && (await registry.hasBlob(digest, signal))) return;
      const path = withDigest(session.location, digest);
      const headers = { 'content-type': 'application/octet-stream' };
      try {
        await registry.send({ task: 'PUT blob', method: 'PUT', path, headers, body: '', signal });
      } catch (error) {
        if (isLost(error)) throw new UploadLostError((error as Error).message);
        // The registry has bytes from another process: from an earlier release of the compressor, or from a file that
        // changed.
        const isOther = error instanceof CloudError && error.status === 400 && session.isDoubtful;
        throw isOther ? new UploadLostError(error.message) : error;
      }
    },
    { signal },
  );
}

function withDigest(location: URL, digest: string): URL {
  const url = new URL(location);
  url.searchParams.set('digest', digest);
  return url;
}
