import { readFile } from 'node:fs/promises';
import type { Logger } from '@nodepool-builder/image-builder';
import { ZuulApi } from '../api/zuul-api.ts';
import { ZuulError } from '../api/zuul-error.ts';
import { ZuulHttp } from '../api/zuul-http.ts';
import { createCredentials, type ZuulAuthentication } from '../credentials/create-credentials.ts';
import type { ZuulSettings } from '../zuul-settings.ts';
import type { BuildSource } from './find-build.ts';
import { artifactFormat } from './image-artifact.ts';

/**
 * The API that an image comes from, with its credentials and the authorities that it is trusted by.
 *
 * @throws ZuulError `invalid-settings`
 */
export async function zuulApiOf(settings: ZuulSettings, logger: Logger): Promise<ZuulApi> {
  const { 'api-url': apiUrl, tenant, auth } = settings;
  const ca = await readAuthorities(settings);
  const http = new ZuulHttp(ca === undefined ? {} : { ca });
  return new ZuulApi({
    apiUrl,
    ...(tenant !== undefined && { tenant }),
    credentials: createCredentials(authenticationOf(auth), { http }),
    http,
    logger,
  });
}

/** Which builds make an image, and what of them it is. */
export function buildSourceOf(name: string, settings: ZuulSettings): BuildSource {
  const { project, pipelines, job, branch, 'image-name': imageName = name } = settings;
  const artifacts = settings.artifacts.map(({ format, type }) => ({ format: artifactFormat(format), type }));
  return {
    query: { project, pipelines, job, ...(branch !== undefined && { branch }) },
    rules: { imageName, artifacts, requireSha256: settings['require-sha256'] },
  };
}

function authenticationOf(auth: ZuulSettings['auth'] = {}): ZuulAuthentication {
  const {
    'token-file': path,
    'token-command': [command, ...args] = [],
    'shared-secret': shared,
    'client-credentials': client,
  } = auth;
  if (path !== undefined) return { type: 'token-file', path };
  if (command !== undefined) return { type: 'token-command', command: [command, ...args] };
  if (shared !== undefined) return { type: 'shared-secret', ...shared, secretFile: shared['secret-file'] };
  if (client === undefined) return { type: 'none' };
  const { 'client-id': clientId, 'secret-file': secretFile } = client;
  return { type: 'client-credentials', ...client, clientId, secretFile };
}

/**
 * The certificates of the authorities that the API and the artifacts are trusted by besides the usual ones, PEM.
 *
 * @throws ZuulError `invalid-settings`
 */
export async function readAuthorities({
  'ca-file': caFile,
}: Pick<ZuulSettings, 'ca-file'>): Promise<string | undefined> {
  if (caFile === undefined) return undefined;
  return await readFile(caFile, 'utf8').catch((cause: unknown) => {
    throw new ZuulError(
      'invalid-settings',
      `the certificates to trust a Zuul by cannot be read: ${(cause as Error).message}; correct the path or its permissions`,
      { cause },
    );
  });
}
