import { once } from 'node:events';
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { ImageError } from '@nodepool-builder/image-builder';
import { asNetworkError } from '@nodepool-builder/image-builder/internal';
import { HttpAgent } from '@nodepool-builder/image-builder/plugin';
import type { AddressGuard } from './address-guard.ts';
import { nameOf, wireUrl } from './artifact-url.ts';
import { TransientError } from './retries.ts';

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

const MAX_REDIRECTS = 5;

/** Minimum bytes per second, on average over the time of {@link STALL}, below which a connection counts as lost. */
const LOWEST_RATE = 1024;

/** Default time in milliseconds after which a connection without a response, or with too few bytes, counts as lost. */
const STALL = 60_000;

/** Access to artifacts. Requests have no credentials, because a job decides where artifacts are. */
export interface ArtifactAccess {
  /** Decides which hosts may be contacted, including targets of redirects. */
  readonly guard: AddressGuard;
  /** Base URL of the buckets that `s3://` names. */
  readonly s3Endpoint?: string | undefined;
  /** PEM certificates of additional authorities. */
  readonly furtherCa?: string | undefined;
}

/** A response, with its URL after redirects. */
export interface HttpStream {
  readonly url: URL;
  readonly response: IncomingMessage;
}

/**
 * One URL, and the connections to its server. It does not use the HttpClient, which is based on got, because an
 * artifact is streamed without copies (measured by bench:download), over connections whose addresses the guard has
 * checked.
 */
export class HttpSource {
  /** Name of the URL in messages. */
  readonly name: string;
  readonly #url: URL;
  readonly #guard: AddressGuard;
  readonly #stall: number;
  readonly #agent: HttpAgent;

  /**
   * @param url absolute http, https or s3 URL
   * @param stall milliseconds after which a connection without a response, or with too few bytes, counts as lost
   * @throws ImageError `invalid-configuration`
   */
  constructor(url: string, { guard, s3Endpoint, furtherCa }: ArtifactAccess, stall: number = STALL) {
    this.#url = wireUrl(url, s3Endpoint);
    this.name = nameOf(this.#url);
    this.#guard = guard;
    this.#stall = stall;
    this.#agent = new HttpAgent({ keepAlive: true, furtherCa });
  }

  /**
   * Sends a GET and follows redirects each time, because a redirect target may expire within minutes. The caller reads
   * the body to its end, or destroys the response.
   *
   * @throws TransientError
   * @throws ImageError `artifact-refused`
   */
  async get(headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<HttpStream> {
    let url = this.#url;
    for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects += 1) {
      const response = await this.#send(url, headers, signal);
      const { location } = response.headers;
      if (!REDIRECTS.has(response.statusCode ?? 0) || location === undefined) return { url, response };
      response.destroy();
      url = redirected(url, location);
    }
    throw refused(this.#url, `it is redirected more than ${MAX_REDIRECTS} times`);
  }

  /**
   * Yields a body in chunks.
   *
   * @throws TransientError if the body is interrupted or too slow
   */
  async *body({ url, response }: HttpStream, signal: AbortSignal): AsyncGenerator<Buffer, void, undefined> {
    const seconds = this.#stall / 1000;
    let received = 0;
    let isWaiting = true;
    const timer = setInterval(() => {
      if (isWaiting && received < seconds * LOWEST_RATE) {
        response.destroy(new Error(`only ${received} bytes arrived in ${seconds} s`));
      }
      received = isWaiting ? 0 : Number.POSITIVE_INFINITY; // a slow reader is not an error of the server
    }, this.#stall);
    try {
      for await (const chunk of chunksOf(response)) {
        received += chunk.length;
        isWaiting = false;
        yield chunk;
        isWaiting = true;
      }
    } catch (error) {
      throw failure(url, error, signal);
    } finally {
      clearInterval(timer);
      response.destroy(); // no effect on a response that was read to its end
    }
  }

  /** Closes all connections. */
  close(): void {
    this.#agent.destroy();
  }

  async #send(
    url: URL,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    await this.#guard.check(url, this.#agent.usesProxy(url));
    const request = (url.protocol === 'https:' ? requestHttps : requestHttp)(url, {
      agent: this.#agent,
      lookup: this.#guard.lookup,
      headers: { 'accept-encoding': 'identity', ...headers },
      signal,
    });
    request.on('error', () => {}); // after the response, its reader receives the error
    request.end();
    // A timeout of the socket is not enough, because header fields may arrive one byte at a time.
    const late = new Error(`no response arrived within ${this.#stall / 1000} s`);
    const timer = setTimeout(() => request.destroy(late), this.#stall);
    try {
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      return response;
    } catch (error) {
      throw failure(url, error, signal);
    } finally {
      clearTimeout(timer);
    }
  }
}

/**
 * Yields the chunks of a response, including those that arrived before the connection broke, which a stream's iterator
 * drops.
 */
async function* chunksOf(response: IncomingMessage): AsyncGenerator<Buffer, void, undefined> {
  let changed = Promise.withResolvers<void>();
  let broken: Error | undefined;
  const onChange = (): void => changed.resolve();
  response.on('readable', onChange).on('end', onChange).on('close', onChange);
  response.on('error', (error) => {
    broken = error;
  });
  for (;;) {
    const chunk = response.read() as Buffer | null;
    if (chunk !== null) {
      yield chunk;
      continue;
    }
    if (response.readableEnded) return;
    if (response.closed) throw broken ?? new Error('aborted');
    await changed.promise;
    changed = Promise.withResolvers();
  }
}

function failure(url: URL, error: unknown, signal: AbortSignal): Error {
  signal.throwIfAborted();
  if (error instanceof ImageError) return error;
  const { kind, message } = asNetworkError(error);
  const reason = `${nameOf(url)}: ${message}`;
  if (kind === 'not-configured') return new ImageError('download-failed', reason, { cause: error });
  return new TransientError(reason, error);
}

function redirected(from: URL, location: string): URL {
  const to = URL.parse(location, from.href);
  if (to === null || !/^https?:$/.test(to.protocol)) {
    throw refused(from, 'it is redirected to a URL that is not http or https');
  }
  if (from.protocol === 'https:' && to.protocol === 'http:') {
    throw refused(from, `it is redirected from https to ${nameOf(to)}, which is not encrypted`);
  }
  return to;
}

function refused(url: URL, reason: string): ImageError {
  return new ImageError(
    'artifact-refused',
    `${nameOf(url)} cannot be fetched: ${reason}; correct the server`,
  );
}
