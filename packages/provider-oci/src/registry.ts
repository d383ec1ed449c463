import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import {
  asNetworkError,
  atOrigin,
  type NetworkErrorKind,
  noResponse,
  objectOf,
  PAGE_SIZES,
  TEXT,
} from '@nodepool-builder/image-builder/internal';
import {
  CloudError,
  cloudError,
  HttpAgent,
  HttpClient,
  type HttpRequest,
  type HttpResponse,
  JsonReader,
  listAll,
  type RetryLimits,
  RetryPolicy,
  unlessAbsent,
} from '@nodepool-builder/image-builder/plugin';
import type { Credentials } from './credentials.ts';
import type { RepositoryName } from './oci-settings.ts';
import { authorize, type Challenge, parseChallenge } from './registry-auth.ts';
import { DeletionForbiddenError, registryError } from './registry-error.ts';

/** Timeout of one request in seconds. Sending a chunk may take long. */
const TIMEOUT = 600;

const RETRY: RetryLimits = { attempts: 6, firstDelay: 1, maxDelay: 30, maxRetryAfter: 300 };

export const MANIFEST_TYPE = 'application/vnd.oci.image.manifest.v1+json';
export const INDEX_TYPE = 'application/vnd.oci.image.index.v1+json';

/**
 * Media types of manifests, also docker's. A registry hides manifests whose type a client does not accept, but their
 * tags are also in use.
 */
const MANIFEST_TYPES = [
  MANIFEST_TYPE,
  INDEX_TYPE,
  'application/vnd.docker.distribution.manifest.v2+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  '*/*',
].join(', ');

const TAGS = new JsonReader(objectOf({ name: TEXT, tags: { type: ['array', 'null'], items: TEXT } }));

export interface RegistryOptions {
  /** `providers[].name`. */
  readonly name: string;
  readonly endpoint: URL;
  readonly repository: RepositoryName;
  readonly credentials: () => Promise<Credentials | undefined>;
  /** Path of a PEM file. Default: Node's certificate authorities. */
  readonly caFile?: string | undefined;
  readonly retry?: Partial<RetryLimits> | undefined;
  readonly onTask?: ((task: string, milliseconds: number) => void) | undefined;
}

/** A manifest as stored in the registry. */
export interface StoredManifest {
  readonly digest: string;
  readonly type: string;
  readonly text: string;
}

/** One request. */
export interface RegistryRequest extends Omit<HttpRequest, 'url' | 'signal' | 'form'> {
  /** Task name for errors and metrics: `PATCH blob`. */
  readonly task: string;
  /** Path below the repository, such as `tags/list`, or a URL from a response. */
  readonly path: string | URL;
  readonly signal: AbortSignal;
}

/** One repository of a registry. */
export class Registry {
  readonly policy: RetryPolicy;
  /** Max chunk size that the registry accepts, in bytes, as far as known. */
  maxChunkSize = Number.POSITIVE_INFINITY;
  readonly #options: RegistryOptions;
  #client: Promise<HttpClient> | undefined;
  /** `Authorization` headers and their challenges, by scope of the requests. */
  readonly #authorizations = new Map<string, { readonly value: string; readonly challenge: Challenge }>();

  constructor(options: RegistryOptions) {
    this.#options = options;
    this.policy = new RetryPolicy({ ...RETRY, ...options.retry });
  }

  get subject(): string {
    return `provider ${this.#options.name}`;
  }

  /** Sends a request, and retries after transient errors. @throws CloudError, or the signal's reason */
  async request(request: RegistryRequest): Promise<HttpResponse> {
    const { signal } = request;
    return await this.policy.run(() => this.send(request), { signal });
  }

  /**
   * Sends a request once, or twice if the first response requires credentials. @throws CloudError, or the signal's
   * reason
   */
  async send({ task, path, signal, ...request }: RegistryRequest): Promise<HttpResponse> {
    signal.throwIfAborted();
    const start = performance.now();
    try {
      const url = typeof path === 'string' ? this.#url(path) : path;
      const response = await this.#authorized({ ...request, url, signal, followsRedirects: false });
      // A redirect to a storage host means that the blob exists.
      if (response.status < 300 || (response.status < 400 && request.method === 'HEAD')) return response;
      if (response.status >= 400) {
        const error = registryError(`${this.subject}: ${task}`, response, request.method);
        // A web page with status 404 does not mean that something is missing.
        if (response.status !== 404 || !/^\s*</.test(response.body)) throw error;
        throw this.#invalid(task, 'the response with status 404 is a web page');
      }
      const target = URL.parse(response.headers.location ?? '', url.href)?.origin ?? 'nowhere';
      const reason = `${url.origin} redirects to ${target}; correct repository or endpoint`;
      throw cloudError('bad-request', `${this.subject}: ${task}`, reason);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof CloudError || !(error instanceof Error)) throw error;
      const { message, kind } = asNetworkError(error);
      if (kind === 'body-too-long') {
        throw cloudError('response-too-large', `${this.subject}: ${task}`, message, { cause: error });
      }
      const { host: from } = this.#options.endpoint;
      throw noResponse(`${this.subject}: ${task}`, error, { from, remedies: REMEDIES });
    } finally {
      this.#options.onTask?.(task, performance.now() - start);
    }
  }

  /** Returns a manifest by tag or digest; undefined if it does not exist. */
  async manifest(reference: string, signal: AbortSignal): Promise<StoredManifest | undefined> {
    const request = {
      task: `GET manifest ${reference}`,
      path: `manifests/${reference}`,
      headers: { accept: MANIFEST_TYPES },
      signal,
    };
    const response = await this.request(request).catch(unlessAbsent);
    if (response === undefined) return undefined;
    const { body: text, headers } = response;
    const [type = ''] = (headers['content-type'] ?? '').split(';', 1);
    if (!/^\s*\{/.test(text)) throw this.#invalid(request.task, 'the response is not a manifest');
    return { digest: contentDigest(text), type: type.trim(), text };
  }

  async putManifest(reference: string, type: string, text: string, signal: AbortSignal): Promise<void> {
    const headers = { 'content-type': type };
    const task = `PUT manifest ${reference}`;
    await this.request({ task, method: 'PUT', path: `manifests/${reference}`, headers, body: text, signal });
  }

  /** Deletes a manifest with all its tags. A missing manifest is not an error. */
  async deleteManifest(digest: string, signal: AbortSignal): Promise<void> {
    const request = {
      method: 'DELETE',
      task: `DELETE manifest ${digest}`,
      path: `manifests/${digest}`,
      signal,
    } as const;
    try {
      await this.request(request).catch(unlessAbsent);
    } catch (error) {
      if (!(error instanceof CloudError) || error.status !== 405) throw error;
      throw new DeletionForbiddenError(`${this.subject}: ${request.task}`, error);
    }
  }

  /** Lists all tags of the repository. Empty if it does not exist yet. */
  async tags(signal: AbortSignal): Promise<string[]> {
    const options = { subject: `${this.subject}: GET tags`, pageSizes: PAGE_SIZES };
    return await listAll(options, async (marker, size) => {
      const first = size === undefined ? 'tags/list' : `tags/list?n=${size}`;
      const path = marker === undefined ? first : this.resolve(marker);
      const response = await this.request({ task: 'GET tags', path, signal }).catch((error: unknown) => {
        if (marker !== undefined) throw error; // Only the first page can report that the repository does not exist.
        return unlessAbsent(error);
      });
      if (response === undefined) return { entries: [] };
      const { tags } = TAGS.parse(response.body, (reason) => this.#invalid('GET tags', reason));
      const entries = tags ?? [];
      const next = nextPage([response.headers.link ?? ''].flat().join(','));
      return { entries, next: entries.length === 0 ? undefined : next };
    });
  }

  /** Returns whether the repository contains a blob. */
  async hasBlob(digest: string, signal: AbortSignal): Promise<boolean> {
    const request = { method: 'HEAD', task: 'HEAD blob', path: `blobs/${digest}`, signal } as const;
    return (await this.request(request).catch(unlessAbsent)) !== undefined;
  }

  /**
   * Resolves the URL of a `Location` or `Link` header. A registry behind a load balancer may return its own host, port
   * or scheme, but its API is requested at the endpoint. Other hosts, such as storage, get no token.
   *
   * @throws CloudError if the URL does not use TLS, unlike the endpoint
   */
  resolve(location: string): URL {
    const { endpoint } = this.#options;
    const url = URL.parse(location, this.#url('').href);
    const isOwn = url?.hostname === endpoint.hostname || url?.pathname.startsWith('/v2/');
    if (url !== null && isOwn) return atOrigin(url, endpoint);
    if (url !== null && (url.protocol === 'https:' || url.protocol === endpoint.protocol)) return url;
    const reason = `the registry returned a location without TLS, ${url?.origin ?? 'which is not a URL'}`;
    const remedy = 'correct the host in its configuration, or X-Forwarded-Proto of its proxy';
    throw cloudError('bad-request', this.subject, `${reason}; ${remedy}`);
  }

  #invalid(task: string, reason: string): CloudError {
    const { host } = this.#options.endpoint;
    return cloudError('invalid-response', `${this.subject}: ${task}`, `${host} is not a registry: ${reason}`);
  }

  #url(path: string): URL {
    const { endpoint, repository } = this.#options;
    return new URL(`/v2/${repository.path}/${path}`, endpoint);
  }

  async #authorized(request: HttpRequest & { readonly signal: AbortSignal }): Promise<HttpResponse> {
    this.#client ??= this.#open();
    const client = await this.#client;
    const { endpoint, credentials } = this.#options;
    // Never send the registry's token to the storage host that it redirects to.
    if (request.url.origin !== endpoint.origin) return await client.send(request);
    const { method = 'GET', signal } = request;
    const scope = method === 'GET' || method === 'HEAD' ? 'pull' : method === 'DELETE' ? 'delete' : 'push';
    const send = async (authorization: string | undefined): Promise<HttpResponse> =>
      await client.send({
        ...request,
        headers: { ...request.headers, ...(authorization !== undefined && { authorization }) },
      });
    const known = this.#authorizations.get(scope);
    const response = await send(known?.value);
    // Amazon's registry rejects an expired password with 403, without a challenge.
    const isRefused = response.status === 401 || (response.status === 403 && known !== undefined);
    if (!isRefused) return response;
    if (response.status === 401) this.#authorizations.delete(scope);
    const challenge = parseChallenge(response.headers['www-authenticate']) ?? known?.challenge;
    const authorization = await authorize({
      client,
      challenge,
      registry: endpoint,
      credentials: await credentials(),
      subject: this.subject,
      signal,
    });
    // The same password would be rejected again.
    if (challenge === undefined || authorization === known?.value) return response;
    this.#authorizations.set(scope, { value: authorization, challenge });
    return await send(authorization);
  }

  async #open(): Promise<HttpClient> {
    const { caFile } = this.#options;
    const ca = caFile === undefined ? undefined : await this.#readAuthority(caFile);
    return new HttpClient({ timeout: TIMEOUT, agent: new HttpAgent({ ca }) });
  }

  async #readAuthority(path: string): Promise<Buffer> {
    try {
      return await readFile(path);
    } catch (error) {
      this.#client = undefined;
      const reason = `it cannot be read: ${(error as Error).message}`;
      throw cloudError('bad-request', `${this.subject}: ca-file`, reason, { cause: error });
    }
  }
}

const REMEDIES: Partial<Record<NetworkErrorKind, string>> = {
  'unknown-authority': 'set ca-file to the certificate of its authority',
};

/** Computes the digest of a manifest or a blob. */
export function contentDigest(bytes: string | Uint8Array): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

/** Returns the URL with the relation `next` in a header `Link: <url>; rel="next"`. */
function nextPage(links: string): string | undefined {
  const next = links.split('<').find((link) => /;\s?rel="?next\b/i.test(link));
  return next?.split('>', 1)[0];
}
