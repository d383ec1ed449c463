import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import net, { type AddressInfo, type Socket } from 'node:net';
import tls, { type SecureContextOptions, type TlsOptions } from 'node:tls';
import { checkPort } from '../argument-checks.ts';
import { GearmanError } from '../errors.ts';
import type { Logger } from '../logger.ts';

/** Milliseconds before the first keep-alive probe, which detects peers that vanished. */
const KEEP_ALIVE_DELAY = 10_000;

/** Timeout of a TLS handshake, in milliseconds. */
const HANDSHAKE_LIMIT = 10_000;

/** File descriptors reserved for Node, the journal, log files, and the embedding program. */
const RESERVED_DESCRIPTORS = 64;

/** Options of a {@link Listener}. */
export interface ListenerOptions {
  readonly logger: Logger | undefined;
  readonly tls: TlsOptions | undefined;
  readonly maxConnections: number | undefined;
  /** Called for each connection, after the TLS handshake if any. */
  readonly onConnection: (socket: Socket) => void;
}

/** Address on which a server listens. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** Accepts connections, plain or over TLS, and owns their sockets, including those in a handshake. */
export class Listener {
  readonly #server: net.Server;
  readonly #sockets = new Set<Socket>();
  #isStarting = false;

  constructor({ logger, tls: tlsOptions, maxConnections, onConnection }: ListenerOptions) {
    this.#server = tlsOptions ? createTlsServer(tlsOptions, onConnection) : net.createServer(onConnection);
    const limit = maxConnections ?? descriptorLimit();
    if (limit !== undefined) this.#server.maxConnections = limit;
    this.#server.on('connection', (socket) => this.#onSocket(socket));
    const remedy = maxConnections === undefined ? 'raise it with ulimit -n' : 'raise it with maxConnections';
    this.#server.on('drop', (data) =>
      logger?.warn(
        `a connection from ${data?.remoteAddress}:${data?.remotePort} was rejected: the limit of ${limit} connections is reached; ${remedy}`,
      ),
    );
    this.#server.on('tlsClientError', (error: Error, socket: tls.TLSSocket) => {
      logger?.warn(`a TLS handshake with ${peerOf(socket)} failed: ${error.message.trim()}`);
      socket.destroy(); // Node leaves it open after a timeout
    });
    this.#server.on('error', (error) => logger?.error(`the job server's listener failed: ${error.message}`));
  }

  /** Address of the server; undefined while it does not listen. */
  get address(): ListenAddress | undefined {
    const address = this.#server.address() as AddressInfo | null;
    return address ? { host: address.address, port: address.port } : undefined;
  }

  /** @throws GearmanError `listen-failed`; `invalid-argument` for an invalid port */
  async listen(port: number, host: string): Promise<ListenAddress> {
    checkPort('port', port);
    const { address } = this;
    if (address || this.#isStarting) {
      const where = address ? ` on ${address.host}:${address.port}` : '';
      throw new GearmanError('listen-failed', `the job server already listens${where}; close it first`);
    }
    this.#isStarting = true; // Node would listen twice and close only one of the two
    try {
      await once(this.#server.listen(port, host), 'listening');
    } catch (cause) {
      const { code, message } = cause as NodeJS.ErrnoException;
      const remedy =
        code === 'EADDRINUSE'
          ? 'stop the program that listens there, or choose another port'
          : 'choose another address or port';
      const text = `the job server cannot listen on ${host}:${port}: ${message}; ${remedy}`;
      throw new GearmanError('listen-failed', text, { cause });
    } finally {
      this.#isStarting = false;
    }
    return this.address as ListenAddress;
  }

  /** Sets the certificates for new connections. */
  setSecureContext(options: SecureContextOptions): void {
    if (!(this.#server instanceof tls.Server)) {
      throw new GearmanError(
        'invalid-argument',
        'the job server does not use TLS; construct it with the option tls',
      );
    }
    try {
      this.#server.setSecureContext(options);
    } catch (cause) {
      throw unusable(cause);
    }
  }

  /** Accepts no further connections. Resolves when all connections have closed. */
  async stop(): Promise<void> {
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Destroys all connections. */
  destroySockets(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Called before the TLS handshake, if any. */
  #onSocket(socket: Socket): void {
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_DELAY);
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
  }
}

/**
 * Number of connections that the limit of file descriptors allows; undefined if unknown. Node closes further ones
 * without notice.
 */
function descriptorLimit(): number | undefined {
  let limits: string;
  try {
    limits = readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return undefined; // not Linux
  }
  const openFiles = Number(/^Max open files +(\d+)/m.exec(limits)?.[1]);
  return Number.isNaN(openFiles) ? undefined : Math.max(1, openFiles - RESERVED_DESCRIPTORS);
}

/** Address of the peer, unless the socket has closed. */
function peerOf({ remoteAddress, remotePort }: Socket): string {
  return remoteAddress === undefined ? 'a peer' : `${remoteAddress}:${remotePort}`;
}

function createTlsServer(options: TlsOptions, onConnection: (socket: Socket) => void): tls.Server {
  try {
    return tls.createServer({ handshakeTimeout: HANDSHAKE_LIMIT, ...options }, onConnection);
  } catch (cause) {
    throw unusable(cause);
  }
}

function unusable(cause: unknown): GearmanError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  const message = `the certificate or its key cannot be used: ${reason}; give a certificate and its key, both as PEM`;
  return new GearmanError('invalid-argument', message, { cause });
}
