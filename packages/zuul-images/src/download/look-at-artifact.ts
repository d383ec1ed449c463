import { ImageError } from '@nodepool-builder/image-builder';
import { AddressGuard } from './address-guard.ts';
import type { ArtifactRequest } from './artifact-request.ts';
import { nameOf, wireUrl } from './artifact-url.ts';
import { HttpSource } from './http-source.ts';
import { TransientFailure } from './retries.ts';
import { findObject } from './stored-object.ts';

/** Milliseconds without a byte after which nothing is to be expected any more. */
const STALL = 30_000;

/** Where an artifact is, and how its server is asked. */
export type ArtifactPlace = Pick<
  ArtifactRequest,
  'url' | 'headers' | 's3Endpoint' | 'ca' | 'configuredUrls' | 'allowedHosts'
>;

/** What a server says of an artifact that is there. */
export interface FoundArtifact {
  /** Bytes of the object as it is stored, packed or not; absent if the server does not tell. */
  readonly size?: number;
}

/**
 * Asks the server for the first byte of an artifact, once: whether it is there, and how large it is.
 *
 * @throws ImageError `artifact-expired`, `artifact-refused`, `download-failed`, `invalid-configuration`
 * @throws the signal's reason
 */
export async function lookAtArtifact(
  { url, headers = {}, s3Endpoint, ca, configuredUrls, allowedHosts = [] }: ArtifactPlace,
  signal: AbortSignal,
): Promise<FoundArtifact> {
  const wire = wireUrl(url, s3Endpoint);
  const guard = new AddressGuard({ configuredUrls: configuredUrls ?? [wire.href], allowedHosts });
  const source = new HttpSource(wire, { headers, guard, stall: STALL, ...(ca !== undefined && { ca }) });
  try {
    const found = await findObject(source, signal);
    if ('answer' in found) found.answer.response.destroy();
    return found.size === undefined ? {} : { size: found.size };
  } catch (cause) {
    if (!(cause instanceof TransientFailure)) throw cause;
    throw new ImageError('download-failed', `${nameOf(wire)}: ${cause.message}; try again later`, { cause });
  } finally {
    source.close();
  }
}
