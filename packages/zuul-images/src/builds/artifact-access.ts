import { getCACertificates } from 'node:tls';
import type { ArtifactPlace } from '../download/look-at-artifact.ts';
import type { ZuulSettings } from '../zuul-settings.ts';
import { readAuthorities } from './image-source.ts';

/**
 * How the artifacts of an image are asked for. They get no credentials, and no host of a loopback, link-local or private
 * network is asked unless the configuration names one: the token is for the API, and the job decides the artifact's
 * URL.
 */
export type ArtifactAccess = Omit<ArtifactPlace, 'url' | 'headers'>;

/** @throws ZuulError `invalid-settings` */
export async function artifactAccessOf(settings: ZuulSettings): Promise<ArtifactAccess> {
  const { 'api-url': apiUrl, 's3-endpoint': s3Endpoint, 'allowed-hosts': allowedHosts } = settings;
  const ca = await readAuthorities(settings);
  return {
    configuredUrls: [apiUrl, ...(s3Endpoint === undefined ? [] : [s3Endpoint])],
    ...(allowedHosts !== undefined && { allowedHosts }),
    ...(s3Endpoint !== undefined && { s3Endpoint }),
    ...(ca !== undefined && { ca: [...getCACertificates('default'), ca].join('\n') }),
  };
}
