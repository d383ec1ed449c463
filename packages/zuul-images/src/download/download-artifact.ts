import { createHash } from 'node:crypto';
import { rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ImageError } from '@nodepool-builder/image-builder';
import { asImageError, makeStateDirectory } from '@nodepool-builder/image-builder/module-kit';
import { AddressGuard } from './address-guard.ts';
import type { ArtifactRequest, DownloadedArtifact, DownloadOptions } from './artifact-request.ts';
import { nameOf, wireUrl } from './artifact-url.ts';
import { attemptDownload } from './attempt-download.ts';
import { checkArtifact } from './expected.ts';
import { HttpSource } from './http-source.ts';
import { DOWNLOAD_RETRIES, Retries, TransientFailure } from './retries.ts';

const DEFAULT_STALL = 60_000;

/**
 * Fetches an artifact over HTTP, unpacks and hashes it on the way, and writes a sparse file. It resumes a call that was
 * aborted, failed with `download-failed`, or died with its process; other failures leave nothing. The file is not
 * flushed to disk: publishing an image does that.
 *
 * @throws ImageError `artifact-expired`, `artifact-refused`, `artifact-damaged`, `artifact-too-large`,
 *   `download-failed`, `disk-full`, `directory-not-usable`, `command-not-found` (for xz), `invalid-configuration`
 * @throws the signal's reason
 */
export async function downloadArtifact(
  request: ArtifactRequest,
  options: DownloadOptions = {},
): Promise<DownloadedArtifact> {
  const { destination, stateDirectory, s3Endpoint } = request;
  const { signal = new AbortController().signal } = options;
  signal.throwIfAborted();
  const url = wireUrl(request.url, s3Endpoint);
  try {
    const state = await stateOf(url, stateDirectory, destination);
    try {
      return await download(url, state, request, { ...options, signal });
    } catch (error) {
      if (mayGoOn(error, signal)) await rm(join(state, 'unpacked'), { force: true });
      else await rm(state, { recursive: true, force: true });
      throw error;
    }
  } catch (error) {
    throw asImageError(error, `downloading ${nameOf(url)}`);
  }
}

/** Whether another call can resume the download. */
function mayGoOn(error: unknown, signal: AbortSignal): boolean {
  return signal.aborted || (error instanceof ImageError && error.code === 'download-failed');
}

async function download(
  url: URL,
  state: string,
  request: ArtifactRequest,
  options: DownloadOptions & { readonly signal: AbortSignal },
): Promise<DownloadedArtifact> {
  const {
    destination,
    expected = {},
    headers = {},
    ca,
    configuredUrls = [url.href],
    allowedHosts = [],
  } = request;
  const guard = new AddressGuard({ configuredUrls, allowedHosts });
  const { signal, logger, stall = DEFAULT_STALL, retryPolicy = DOWNLOAD_RETRIES } = options;
  const source = new HttpSource(url, { headers, guard, stall, ...(ca !== undefined && { ca }) });
  const retries = new Retries(retryPolicy, logger);
  let fetched = 0;
  try {
    for (;;) {
      try {
        const { file, object } = await attemptDownload(source, state, request, {
          ...options,
          retryPolicy,
          onBytes: (bytes) => (fetched += bytes),
        });
        checkArtifact(nameOf(url), expected, object);
        await rename(file, destination);
        await rm(state, { recursive: true });
        return { size: object.size, checksums: object.checksums, fetched };
      } catch (error) {
        if (!(error instanceof TransientFailure)) throw error;
        await retries.pause(error, 0, signal);
      }
    }
  } finally {
    source.close();
  }
}

/**
 * Creates the directory for the partial download of an artifact. The signature in the query of a URL is not part of
 * the artifact's identity.
 *
 * @throws ImageError `directory-not-usable` if the finished file could not be moved from there to its destination
 */
async function stateOf(url: URL, stateDirectory: string, destination: string): Promise<string> {
  const path = join(stateDirectory, createHash('sha256').update(nameOf(url)).digest('hex').slice(0, 32));
  await makeStateDirectory(path);
  const [state, target] = await Promise.all([stat(path), stat(dirname(destination))]);
  if (state.dev === target.dev) return path;
  throw new ImageError(
    'directory-not-usable',
    `"${stateDirectory}" and "${destination}" are on two file systems; let the state of downloads lie where images do`,
  );
}
