import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { LoopbackServer, type Reply, send } from '../loopback-server.ts';
import { errorReply, RegistryState, type StateOptions, type StateRequest } from './registry-state.ts';

/** A request that the double has received. */
export interface SeenRequest {
  readonly method: string;
  /** `PATCH blobs/uploads`: the method and the path without ids. */
  readonly operation: string;
  readonly path: string;
  /** Size of the body. */
  readonly bytes: number;
}

/**
 * Fault of a request. `dropped`: it has no effect and no response. `lost`: it has an effect, but no response. `cut`:
 * the connection is closed after this number of bytes of the body. Otherwise the response.
 */
export type Fault = 'dropped' | 'lost' | { readonly cut: number } | Reply;

export interface RegistryDoubleOptions extends StateOptions {
  /** The only user. Default: all requests are permitted without a login. */
  readonly user?: { readonly name: string; readonly password: string; readonly refreshToken?: string };
  /** Number of requests after which a token expires. Default: none. */
  readonly usesOfToken?: number;
}

interface Token {
  readonly actions: ReadonlySet<string>;
  uses: number;
}

/** A container registry on loopback, in memory, with a token service. */
export class RegistryDouble extends LoopbackServer {
  readonly state: RegistryState;
  readonly requests: SeenRequest[] = [];
  /** Called for each request before it has an effect. */
  fault: (request: SeenRequest) => Fault | undefined = () => undefined;
  readonly #options: RegistryDoubleOptions;
  readonly #tokens = new Map<string, Token>();
  readonly #prefix: string;

  /** Starts a registry with one repository. */
  static async start(options: RegistryDoubleOptions = {}, repository = 'ci/images'): Promise<RegistryDouble> {
    return await new RegistryDouble(options, `/v2/${repository}/`).listen();
  }

  private constructor(options: RegistryDoubleOptions, prefix: string) {
    super();
    this.#options = options;
    this.#prefix = prefix;
    this.state = new RegistryState(prefix, options);
  }

  /** `127.0.0.1:port`. */
  get host(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** Returns the number of requests with an operation. */
  count(operation: string): number {
    return this.requests.filter((request) => request.operation === operation).length;
  }

  protected override async serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', headers } = incoming;
    const url = new URL(incoming.url ?? '', this.endpoint);
    const path = url.pathname.startsWith(this.#prefix)
      ? url.pathname.slice(this.#prefix.length)
      : url.pathname;
    const operation = `${method} ${path.replace(/^(manifests|blobs(?:\/uploads)?|tags)\/.*$/, '$1')}`;
    const seen = { method, operation, path, bytes: Number(headers['content-length'] ?? 0) };
    const denied = this.#authenticate(incoming, url.pathname);
    // Requests without a token have no effect, and are not counted.
    const fault = denied === undefined ? this.#note(seen) : undefined;
    const cut = typeof fault === 'object' && 'cut' in fault ? fault.cut : undefined;
    const body = await readBody(incoming, cut);
    const request: StateRequest = { method, path, query: url.searchParams, headers, body };
    if (denied !== undefined) return send(response, denied);
    if (fault === 'dropped') return void response.destroy();
    if (typeof fault === 'object' && 'status' in fault) return send(response, fault);
    const answer =
      url.pathname === '/token' ? this.#giveToken(request) : this.state.respond(request, cut !== undefined);
    if (fault !== undefined) return void response.destroy();
    return send(response, answer);
  }

  #note(seen: SeenRequest): Fault | undefined {
    this.requests.push(seen);
    return this.fault(seen);
  }

  /** Returns the response to a request without a valid token. */
  #authenticate({ method = '', headers }: IncomingMessage, path: string): Reply | undefined {
    if (this.#options.user === undefined || path === '/token') return undefined;
    const action = method === 'DELETE' ? 'delete' : method === 'GET' || method === 'HEAD' ? 'pull' : 'push';
    const value = /^Bearer (?<token>.+)$/.exec(headers.authorization ?? '')?.groups?.token ?? '';
    const token = this.#tokens.get(value);
    if (token?.actions.has(action) && token.uses > 0) {
      token.uses -= 1;
      return undefined;
    }
    const scope = `repository:${this.#prefix.slice('/v2/'.length, -1)}:${action === 'push' ? 'pull,push' : action}`;
    const challenge = `Bearer realm="${this.endpoint}/token",service="double",scope="${scope}"`;
    const refused = errorReply(401, 'UNAUTHORIZED', 'authentication required');
    return { ...refused, headers: { ...refused.headers, 'www-authenticate': challenge } };
  }

  #giveToken({ method, query, headers, body }: StateRequest): Reply {
    const { user, usesOfToken = Number.POSITIVE_INFINITY } = this.#options;
    const form = method === 'POST' ? new URLSearchParams(body.toString()) : query;
    const basic = `Basic ${Buffer.from(`${user?.name}:${user?.password}`).toString('base64')}`;
    const isKnown =
      method === 'POST'
        ? form.get('grant_type') === 'refresh_token' && form.get('refresh_token') === user?.refreshToken
        : headers.authorization === basic;
    if (!isKnown || form.get('service') !== 'double') {
      return errorReply(401, 'UNAUTHORIZED', 'incorrect username or password');
    }
    const token = randomUUID();
    const actions = (form.get('scope') ?? '').split(':').at(-1)?.split(',') ?? [];
    this.#tokens.set(token, { actions: new Set(actions), uses: usesOfToken });
    return { status: 200, body: JSON.stringify(method === 'POST' ? { access_token: token } : { token }) };
  }
}

async function readBody(incoming: IncomingMessage, cut = Number.POSITIVE_INFINITY): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let length = 0;
  try {
    for await (const piece of incoming as AsyncIterable<Buffer>) {
      pieces.push(piece);
      length += piece.length;
      if (length >= cut) break;
    }
  } catch {
    // The client has closed the connection: the bytes so far count.
  }
  const body = Buffer.concat(pieces);
  return body.subarray(0, Math.min(body.length, cut));
}
