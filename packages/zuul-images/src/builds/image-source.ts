import { readFile } from 'node:fs/promises';
import type { Logger } from '@nodepool-builder/image-builder';
import { ZuulApi } from '../api/zuul-api.ts';
import { ZuulError } from '../api/zuul-error.ts';
import { ZuulHttp } from '../api/zuul-http.ts';
import { createCredentials } from '../credentials/create-credentials.ts';
import type { ZuulImage } from '../zuul-image.ts';
import type { BuildSource } from './find-build.ts';

/**
 * The API that an image comes from, with its credentials and the authorities that it is trusted by.
 *
 * @throws ZuulError `invalid-settings`
 */
export async function zuulApiOf(zuul: ZuulImage, logger: Logger): Promise<ZuulApi> {
  const { apiUrl, tenant, authentication } = zuul;
  const ca = await readAuthorities(zuul);
  const http = new ZuulHttp(ca === undefined ? {} : { ca });
  return new ZuulApi({
    apiUrl,
    ...(tenant !== undefined && { tenant }),
    credentials: createCredentials(authentication, { http }),
    http,
    logger,
  });
}

/** Which builds make an image, and what of them it is. */
export function buildSourceOf(name: string, zuul: ZuulImage): BuildSource {
  const { project, pipelines, job, branch, imageName = name, artifacts, requireSha256 } = zuul;
  return {
    query: { project, pipelines, job, ...(branch !== undefined && { branch }) },
    rules: { imageName, artifacts, ...(requireSha256 !== undefined && { requireSha256 }) },
  };
}

/**
 * The certificates of the authorities that the API and the artifacts are trusted by besides the usual ones, PEM.
 *
 * @throws ZuulError `invalid-settings`
 */
export async function readAuthorities({ caFile }: ZuulImage): Promise<string | undefined> {
  if (caFile === undefined) return undefined;
  return await readFile(caFile, 'utf8').catch((cause: unknown) => {
    throw new ZuulError(
      'invalid-settings',
      `the certificates to trust a Zuul by cannot be read: ${(cause as Error).message}; correct the path or its permissions`,
      { cause },
    );
  });
}
