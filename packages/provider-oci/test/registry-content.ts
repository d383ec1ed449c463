import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { buffer } from 'node:stream/consumers';
import { type DockerRegistry, PASSWORD, USER } from './docker-registry.ts';

/** Response of a registry to a client other than ours. */
export interface RawResponse {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

interface RawRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

/** Sends a request below `/v2/ci/images/`. */
export async function ask(
  { host, caFile }: DockerRegistry,
  path: string,
  { method = 'GET', headers = {}, body = '' }: RawRequest = {},
): Promise<RawResponse> {
  const sent = request(new URL(path, `https://${host}/v2/ci/images/`), {
    method,
    ca: await readFile(caFile),
    agent: false,
    headers: {
      accept: 'application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json',
      authorization: `Basic ${Buffer.from(`${USER}:${PASSWORD}`).toString('base64')}`,
      ...headers,
    },
  });
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return { status: response.statusCode ?? 0, headers: response.headers, body: await buffer(response) };
}

interface Layer {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly annotations: Record<string, string>;
}

/** Returns a manifest of an image with one layer. */
export interface Manifest {
  readonly artifactType?: string;
  readonly config: Layer;
  readonly layers: readonly [Layer];
  readonly annotations: Record<string, string>;
}

/** A parsed manifest. */
export async function manifestAt(
  registry: DockerRegistry,
  reference: string,
): Promise<Record<string, never>> {
  const { status, body } = await ask(registry, `manifests/${reference}`);
  if (status !== 200) throw new Error(`${reference}: status ${status}`);
  return JSON.parse(body.toString());
}

export async function tagsOf(registry: DockerRegistry): Promise<string[]> {
  const { body } = await ask(registry, 'tags/list');
  return ((JSON.parse(body.toString()) as { tags?: string[] | null }).tags ?? []).toSorted();
}
