import { type DiskImage, ImageError } from '@nodepool-builder/image-builder';
import { formatsToMake } from '@nodepool-builder/image-builder/internal';
import { readAuthorities } from '../api/zuul-http.ts';
import { type ImageArtifact, makeableFormats } from '../builds/image-artifact.ts';
import { AddressGuard } from '../download/address-guard.ts';
import { type ArtifactAccess, HttpSource } from '../download/http-source.ts';
import { TransientError } from '../download/retries.ts';
import { findObject } from '../download/stored-object.ts';
import { artifactFormats, type ZuulSettings } from '../zuul-settings.ts';

/** Milliseconds without data after which the query of a server ends. */
const STALL = 30_000;

/** An artifact that its server has, or may have. */
export interface AvailableArtifact {
  readonly artifact: ImageArtifact;
  /** Size of the stored object in bytes, if the server sent it. */
  readonly size: number | undefined;
}

/**
 * Returns the access to the artifacts of an image. It excludes loopback, link-local and private networks, unless the
 * configuration names a host there.
 *
 * @throws CloudError `invalid-settings`
 */
export async function artifactAccessOf(settings: ZuulSettings): Promise<ArtifactAccess> {
  const { 'api-url': apiUrl, 's3-endpoint': s3Endpoint, 'allowed-hosts': allowedHosts = [] } = settings;
  const configuredUrls = s3Endpoint === undefined ? [apiUrl] : [apiUrl, s3Endpoint];
  const guard = new AddressGuard({ configuredUrls, allowedHosts });
  return { guard, s3Endpoint, furtherCa: await readAuthorities(settings) };
}

/**
 * Queries the servers of artifacts for their existence and size. An artifact counts as available if its server fails or
 * rejects the request, because it may send the artifact later.
 *
 * @returns `expired` is the error `artifact-expired` of another artifact, if there is any
 */
export async function availableArtifacts(
  artifacts: readonly ImageArtifact[],
  access: ArtifactAccess,
  signal: AbortSignal,
): Promise<{ readonly available: readonly AvailableArtifact[]; readonly expired?: ImageError | undefined }> {
  const found = await Promise.all(artifacts.map((artifact) => lookUp(artifact, access, signal)));
  return {
    available: found.filter((each) => 'artifact' in each),
    expired: found.find((each) => each instanceof ImageError),
  };
}

async function lookUp(
  artifact: ImageArtifact,
  access: ArtifactAccess,
  signal: AbortSignal,
): Promise<AvailableArtifact | ImageError> {
  let source: HttpSource | undefined;
  try {
    source = new HttpSource(artifact.url, access, STALL);
    const object = await findObject(source, signal);
    if ('stream' in object) object.stream.response.destroy();
    return { artifact, size: object.size };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof ImageError || error instanceof TransientError)) throw error;
    const isExpired = error instanceof ImageError && error.code === 'artifact-expired';
    return isExpired ? error : { artifact, size: undefined };
  } finally {
    source?.close();
  }
}

/**
 * Returns whether so many artifacts of a build have expired (404, 410, or an expired signed URL) that the formats of
 * the disk image cannot be made from the others.
 *
 * @throws ImageError `invalid-configuration`, `format-unknown`, `format-unavailable`
 * @throws CloudError `invalid-settings`
 */
export async function isImageExpired(
  artifacts: readonly ImageArtifact[],
  diskimage: Pick<DiskImage, 'name' | 'formats'>,
  settings: ZuulSettings,
  signal: AbortSignal,
): Promise<boolean> {
  const access = await artifactAccessOf(settings);
  const { available, expired } = await availableArtifacts(artifacts, access, signal);
  const makeable = makeableFormats(available.map(({ artifact }) => artifact.format));
  const formats = formatsToMake(diskimage, makeableFormats(artifactFormats(settings)));
  return expired !== undefined && !formats.every((format) => makeable.includes(format));
}
