import { once } from 'node:events';
import {
  type ClientRequest,
  Agent as HttpAgent,
  type IncomingMessage,
  request as requestHttp,
} from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { ImageError } from '@nodepool-builder/image-builder';
import { networkFailure } from '@nodepool-builder/image-builder/module-kit';
import type { AddressGuard } from './address-guard.ts';
import { nameOf } from './artifact-url.ts';
import { TransientFailure } from './retries.ts';

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

const MOST_REDIRECTS = 5;

/** Bytes a second below which a server counts as stalled. */
const LOWEST_RATE = 1024;

/** Header fields by host (`host` or `host:port`). */
export type HeadersOfHosts = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** Settings of an {@link HttpSource}. */
export interface HttpSourceOptions {
  readonly headers: HeadersOfHosts;
  /** Decides which hosts may be contacted, including targets of redirects. */
  readonly guard: AddressGuard;
  /** Milliseconds without data after which a connection counts as lost. */
  readonly stall: number;
  /** PEM certificates of authorities, in place of Node's. */
  readonly ca?: string;
}

/** A response, with its URL after redirects. */
export interface Answer {
  /** Milliseconds of {@link HttpSourceOptions.stall}. */
  readonly stall: number;
  readonly url: URL;
  readonly response: IncomingMessage;
}

/**
 * One URL, and the connections to its server. It does not use the HttpClient, which is based on got: an artifact is
 * streamed without copies (measured by bench:download), over connections whose addresses the guard has checked.
 */
export class HttpSource {
  readonly url: URL;
  readonly #options: HttpSourceOptions;
  readonly #http = new HttpAgent({ keepAlive: true });
  readonly #https: HttpsAgent;

  constructor(url: URL, options: HttpSourceOptions) {
    this.url = url;
    this.#options = options;
    this.#https = new HttpsAgent({ keepAlive: true, ...(options.ca !== undefined && { ca: options.ca }) });
  }

  /**
   * Sends a GET and follows redirects each time: a redirect target may expire within minutes. A host receives only its
   * own header fields. The caller reads the body to its end, or destroys the response.
   *
   * @throws TransientFailure
   * @throws ImageError `artifact-refused`
   * @throws the signal's reason
   */
  async get(fields: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Answer> {
    let { url } = this;
    for (let redirects = 0; redirects <= MOST_REDIRECTS; redirects += 1) {
      const response = await this.#send(url, fields, signal);
      const { location } = response.headers;
      if (!REDIRECTS.has(response.statusCode ?? 0) || location === undefined)
        return { url, response, stall: this.#options.stall };
      response.destroy();
      url = redirected(url, location);
    }
    throw refused(this.url, `it is redirected more than ${MOST_REDIRECTS} times`);
  }

  /** Closes all connections. */
  close(): void {
    this.#http.destroy();
    this.#https.destroy();
  }

  async #send(
    url: URL,
    fields: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    const { headers, stall, guard } = this.#options;
    await guard.check(url);
    const options = {
      lookup: guard.lookup,
      headers: { 'accept-encoding': 'identity', ...headers[url.host], ...fields },
      timeout: stall,
      signal,
    };
    const request =
      url.protocol === 'https:'
        ? requestHttps(url, { ...options, agent: this.#https })
        : requestHttp(url, { ...options, agent: this.#http });
    endWhenStalled(request, stall);
    request.end();
    const late = new Error(`no answer came within ${stall / 1000} s`);
    const timer = setTimeout(() => request.destroy(late), stall); // header fields may come one byte at a time
    try {
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      return response;
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof ImageError) throw error;
      throw new TransientFailure(`${nameOf(url)}: ${networkFailure(error).message}`, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Reads a body in chunks. An interrupted or too slow body is a {@link TransientFailure}. */
export async function* bodyOf(
  { url, response, stall }: Answer,
  signal: AbortSignal,
): AsyncGenerator<Buffer, void, undefined> {
  // Only the time spent waiting for the server counts.
  let waited = 0;
  let came = 0;
  let since = performance.now();
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      waited += performance.now() - since;
      came += chunk.length;
      if (waited >= stall) {
        if (came < (waited / 1000) * LOWEST_RATE) throw new Error(tooSlow(came, waited));
        [waited, came] = [0, 0];
      }
      yield chunk;
      since = performance.now();
    }
  } catch (error) {
    signal.throwIfAborted();
    throw new TransientFailure(`${nameOf(url)}: ${networkFailure(error).message}`, { cause: error });
  } finally {
    response.destroy(); // nothing happens to one that was read to its end
  }
}

function tooSlow(bytes: number, milliseconds: number): string {
  return `only ${bytes} bytes came in ${(milliseconds / 1000).toFixed(1)} s`;
}

function endWhenStalled(request: ClientRequest, stall: number): void {
  const reason = new Error(`nothing came for ${stall / 1000} s`);
  request.on('timeout', () => request.destroy(reason));
  // Destroying only the request would give the reader of the response no reason.
  request.on('response', (response) => request.on('timeout', () => response.destroy(reason)));
  request.on('error', () => {}); // told by the response, once there is one
}

function redirected(from: URL, location: string): URL {
  const to = URL.parse(location, from.href);
  if (to === null || !/^https?:$/.test(to.protocol))
    throw refused(from, 'it is redirected to what is no http URL');
  if (from.protocol === 'https:' && to.protocol === 'http:') {
    throw refused(from, `it is redirected from https to ${nameOf(to)}, which anybody on the way can change`);
  }
  return to;
}

function refused(url: URL, reason: string): ImageError {
  return new ImageError(
    'artifact-refused',
    `${nameOf(url)} cannot be fetched: ${reason}; correct the server`,
  );
}
