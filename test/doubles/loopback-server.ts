import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

export interface Request {
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface Reply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Values other than text and bytes are sent as JSON. */
  readonly body?: unknown;
}

/** `lost`: the connection is closed without a response. `silent`: it stays open without one. */
export type Outcome = Reply | 'lost' | 'silent';

/** Thrown in place of a response that does not arrive. */
export class LostResponse extends Error {}

/** An HTTP server on loopback. Subclasses implement `respond` or `serve`. */
export abstract class LoopbackServer implements AsyncDisposable {
  readonly #server: ReturnType<typeof createServer>;
  readonly #scheme: string;

  constructor(tls?: ServerOptions) {
    const listener = (request: IncomingMessage, response: ServerResponse): void => {
      this.serve(request, response).catch(() => response.destroy());
    };
    this.#scheme = tls === undefined ? 'http' : 'https';
    this.#server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  }

  /** Starts to listen. Default: on a free port. */
  async listen(port = 0): Promise<this> {
    await once(this.#server.listen(port, '127.0.0.1'), 'listening');
    return this;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get endpoint(): string {
    return `${this.#scheme}://127.0.0.1:${this.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  /** Returns the response to a complete request. */
  protected respond(_request: Request): Outcome | Promise<Outcome> {
    return { status: 404 };
  }

  /** Reads a request and sends the response. Subclasses override it for bodies that are not read as a whole. */
  protected async serve(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', headers } = message;
    const url = new URL(message.url ?? '', this.endpoint);
    send(response, await this.respond({ method, url, headers, body: await buffer(message) }));
  }
}

export function send(response: ServerResponse, outcome: Outcome): void {
  if (outcome === 'silent') return;
  if (outcome === 'lost') return void response.destroy();
  const { status, headers, body } = outcome;
  const isReady = body === undefined || typeof body === 'string' || Buffer.isBuffer(body);
  response.writeHead(status, { ...(!isReady && { 'content-type': 'application/json' }), ...headers });
  response.end(isReady ? body : JSON.stringify(body));
}
