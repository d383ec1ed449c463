import { readdirSync, readFileSync, statSync } from 'node:fs';
import { type ClientRequest, Agent as DirectAgent, type IncomingMessage } from 'node:http';
import { Agent as DirectTlsAgent } from 'node:https';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { checkServerIdentity, createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import { Agent, type AgentConnectOpts } from 'agent-base';
import { HttpProxyAgent } from 'http-proxy-agent';
import { HttpsProxyAgent } from 'https-proxy-agent';
import type { Environment } from '../process/inherited-environment.ts';
import { HttpSettingsError, proxyFor } from './proxy-choice.ts';

/** Settings of an {@link HttpAgent}. */
export interface HttpAgentOptions {
  /** PEM certificates of authorities. Default: the certificates in `REQUESTS_CA_BUNDLE` or `CURL_CA_BUNDLE`, or Node's. */
  readonly ca?: string | Buffer | undefined;
  /** PEM certificates of authorities in addition to the default. */
  readonly furtherCa?: string | undefined;
  /** PEM certificate and key of this client. */
  readonly cert?: string | Buffer | undefined;
  readonly key?: string | Buffer | undefined;
  /** True to verify the certificate of the server. Default true. */
  readonly rejectUnauthorized?: boolean;
  /**
   * True to reuse connections for several requests. Default false, because on a connection that the server is
   * closing, the error would not show whether the request had an effect.
   */
  readonly keepAlive?: boolean;
  /** Maximum number of direct connections to one host. Default: no limit. */
  readonly maxSockets?: number;
  /** Environment variables. Default: the environment of this process. */
  readonly environment?: Environment;
}

/** Timeout of a connection through a proxy, in milliseconds. */
const PROXY_TIMEOUT = 60_000;

/**
 * The agent of all HTTP clients, for http and https. It connects through the proxy of the environment, and trusts
 * the authorities of the environment.
 */
export class HttpAgent extends Agent {
  readonly #options: HttpAgentOptions;
  readonly #environment: Environment;
  #context: SecureContext | undefined;
  #direct: DirectAgent | undefined;
  #directTls: DirectTlsAgent | undefined;

  constructor(options: HttpAgentOptions = {}) {
    super({ keepAlive: options.keepAlive ?? false });
    this.#options = options;
    this.#environment = options.environment ?? process.env;
  }

  /**
   * Returns whether requests to a URL go through a proxy, which then resolves the host name. @throws HttpSettingsError
   */
  usesProxy({ protocol, hostname, port }: URL): boolean {
    const isTls = protocol === 'https:';
    const host = hostname.replaceAll(/[[\]]/g, '');
    return (
      proxyFor({ isTls, host, port: Number(port || (isTls ? 443 : 80)) }, this.#environment) !== undefined
    );
  }

  /** Called by `node:http` for each request. Only the request has the right protocol; clients may set another one. */
  addRequest(request: ClientRequest, options: object): void {
    const base = Agent.prototype as unknown as Pick<HttpAgent, 'addRequest'>;
    base.addRequest.call(this, request, { ...options, secureEndpoint: request.protocol === 'https:' });
  }

  /** Called by agent-base for each connection. @throws HttpSettingsError; Error that names the proxy */
  override async connect(request: ClientRequest, options: AgentConnectOpts): Promise<Duplex | DirectAgent> {
    const { maxSockets = Number.POSITIVE_INFINITY, rejectUnauthorized = true } = this.#options;
    const pool = { keepAlive: this.keepAlive, maxSockets };
    const { host = 'localhost', secureEndpoint: isTls } = options;
    const port: unknown = options.port; // some clients set a string
    const proxy = proxyFor({ isTls, host, port: Number(port) }, this.#environment);
    if (!isTls) {
      if (proxy !== undefined) return await this.#connectThrough(proxy, request, options);
      this.#direct ??= new DirectAgent(pool);
      return this.#direct;
    }
    this.#context ??= this.#createContext();
    const tls = { secureContext: this.#context, rejectUnauthorized };
    if (proxy !== undefined) return await this.#connectThrough(proxy, request, { ...options, ...tls });
    this.#directTls ??= new DirectTlsAgent({ ...pool, ...tls });
    return this.#directTls;
  }

  override destroy(): void {
    super.destroy();
    this.#direct?.destroy();
    this.#directTls?.destroy();
  }

  #createContext(): SecureContext {
    const { ca = bundledAuthorities(this.#environment), furtherCa, cert, key } = this.#options;
    const all = furtherCa === undefined ? ca : [...[ca ?? getCACertificates('default')].flat(), furtherCa];
    return createSecureContext({ ca: all as string[], cert, key });
  }

  async #connectThrough(proxy: URL, request: ClientRequest, options: AgentConnectOpts): Promise<Duplex> {
    const abort = new AbortController();
    const onClose = (): void => abort.abort(new Error('the request was aborted'));
    request.once('close', onClose);
    const late = new Error(`no connection within ${PROXY_TIMEOUT / 1000} s`);
    const timer = setTimeout(() => abort.abort(late), PROXY_TIMEOUT);
    const ca = proxy.protocol === 'https:' && bundledAuthorities(this.#environment);
    const connection = { signal: abort.signal, ...(ca && { ca: [...ca] }) };
    try {
      return await openTunnel(proxy, request, options, connection);
    } catch (error) {
      if (error instanceof HttpSettingsError) throw error;
      const cause = abort.signal.aborted ? (abort.signal.reason as Error) : (error as NodeJS.ErrnoException);
      const reason = `the proxy ${proxy.host} cannot be used: ${cause.message}`;
      throw Object.assign(new Error(reason), { code: (error as NodeJS.ErrnoException).code });
    } finally {
      clearTimeout(timer);
      request.off('close', onClose);
    }
  }
}

/** Connects to a server through a tunnel. For plain HTTP, connects to the proxy, which gets the whole URL. */
async function openTunnel(
  proxy: URL,
  request: ClientRequest,
  options: AgentConnectOpts,
  connection: object,
): Promise<Duplex> {
  if (!options.secureEndpoint) {
    const emit = request.emit.bind(request);
    // An additional listener would not hide the response from the client.
    request.emit = (event: string, ...values: unknown[]): boolean => {
      const isRefused = event === 'response' && (values[0] as IncomingMessage).statusCode === 407;
      if (isRefused) request.destroy(proxyError(proxy, 407));
      return isRefused || emit(event, ...values);
    };
    return await new HttpProxyAgent(proxy, connection).connect(request as never, options);
  }
  let status = 200;
  request.once('proxyConnect', ({ statusCode }: { statusCode: number }) => {
    status = statusCode;
  });
  // By default, Node compares the certificate of a server that is named by address with the name of the proxy.
  const name = options.servername || options.host || 'localhost';
  const identity: typeof checkServerIdentity = (_, certificate) => checkServerIdentity(name, certificate);
  const tls = { ...options, checkServerIdentity: identity, host: options.host ?? 'localhost' };
  const socket = await new HttpsProxyAgent(proxy, connection).connect(request, tls);
  if (status === 200) return socket;
  socket.destroy();
  throw proxyError(proxy, status);
}

/** Makes the error of a proxy's response. Gateway errors may be temporary. */
function proxyError(proxy: URL, status: number): Error {
  if (status >= 502 && status <= 504) {
    return Object.assign(new Error(`it responds with status ${status}`), { code: 'ERR_PROXY_TUNNEL' });
  }
  const remedy =
    status === 407
      ? 'set a user and a password in its URL, percent-encoded: http://user:password@host:port'
      : 'ask its operator to permit the connection, or name the host in no_proxy';
  return new HttpSettingsError(
    `the proxy ${proxy.host} rejects the connection with status ${status}; ${remedy}`,
  );
}

/** Variables of requests and curl. The first one that is set counts. */
const BUNDLES = ['REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE'] as const;

/** File names that `openssl rehash` gives to the certificates in a directory. */
const HASHED = /^[\da-f]{8}\.\d+$/;

/**
 * Returns the PEM certificates of the authorities in the file or directory that `REQUESTS_CA_BUNDLE` or
 * `CURL_CA_BUNDLE` names, and in the file that `NODE_EXTRA_CA_CERTS` names.
 *
 * @returns undefined without such a variable, so that Node's authorities count
 * @throws HttpSettingsError
 */
function bundledAuthorities(environment: Environment): readonly string[] | undefined {
  const name = BUNDLES.find((each) => environment[each]);
  if (name === undefined) return undefined;
  try {
    return [...readBundle(environment[name] ?? ''), ...getCACertificates('extra')];
  } catch (cause) {
    const reason = `${name} cannot be used: ${(cause as Error).message}`;
    throw new HttpSettingsError(`${reason}; set it to a PEM file or a directory, or unset it`, { cause });
  }
}

function readBundle(path: string): readonly string[] {
  const isDirectory = statSync(path).isDirectory();
  const files = isDirectory ? readdirSync(path).filter((name) => HASHED.test(name)) : [''];
  const certificates = files.map((name) => readFileSync(join(path, name), 'utf8'));
  if (certificates.some((text) => text.includes('-----BEGIN '))) return certificates;
  throw new Error(
    isDirectory
      ? `${path} contains no certificates with names of openssl rehash`
      : `${path} contains no certificate`,
  );
}
