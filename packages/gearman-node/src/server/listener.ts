import { readFileSync } from 'node:fs';
import net, { type AddressInfo, type Socket } from 'node:net';
import tls, { type SecureContextOptions, type TlsOptions } from 'node:tls';
import { checkPort } from '../argument-checks.ts';
import { GearmanError } from '../errors.ts';
import type { Logger } from '../logger.ts';

/** A peer that vanished without a word is noticed after this many milliseconds and some probes. */
const KEEP_ALIVE_DELAY = 10_000;

/** Milliseconds that a TLS handshake may take. */
const HANDSHAKE_LIMIT = 10_000;

/** File descriptors for all but connections: Node's own, the journal, log files, and those of the embedding program. */
const RESERVED_DESCRIPTORS = 64;

/** What a {@link Listener} takes, and whom it tells. */
export interface ListenerOptions {
  readonly logger: Logger | undefined;
  readonly tls: TlsOptions | undefined;
  readonly maxConnections: number | undefined;
  /** Called for each connection; over TLS, after the handshake. */
  readonly onConnection: (socket: Socket) => void;
}

/** Where a server listens. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** Takes connections, plain or over TLS, and owns their sockets, those in the middle of a handshake included. */
export class Listener {
  readonly #server: net.Server;
  readonly #sockets = new Set<Socket>();
  #isStarting = false;

  constructor({ logger, tls: tlsOptions, maxConnections, onConnection }: ListenerOptions) {
    this.#server = tlsOptions ? createTlsServer(tlsOptions, onConnection) : net.createServer(onConnection);
    const limit = maxConnections ?? descriptorLimit();
    if (limit !== undefined) this.#server.maxConnections = limit;
    this.#server.on('connection', (socket) => this.#onSocket(socket));
    const remedy =
      maxConnections === undefined ? 'more need a higher ulimit -n' : 'maxConnections allows no more';
    this.#server.on('drop', (data) =>
      logger?.warn(
        `a connection from ${data?.remoteAddress}:${data?.remotePort} was refused: there are ${limit} already; ${remedy}`,
      ),
    );
    this.#server.on('tlsClientError', (error: Error, socket: tls.TLSSocket) => {
      logger?.warn(`a TLS handshake with ${peerOf(socket)} failed: ${error.message.trim()}`);
      socket.destroy(); // Node leaves it open after a time-out
    });
    this.#server.on('error', (error) => logger?.error(`the job server's listener failed: ${error.message}`));
  }

  /** Undefined while it does not listen. */
  get address(): ListenAddress | undefined {
    const address = this.#server.address() as AddressInfo | null;
    return address ? { host: address.address, port: address.port } : undefined;
  }

  /** @throws GearmanError `listen-failed`; `invalid-argument` for an invalid port */
  async listen(port: number, host: string): Promise<ListenAddress> {
    checkPort('port', port);
    const { address } = this;
    if (address || this.#isStarting) {
      const where = address ? `, on ${address.host}:${address.port}` : '';
      throw new GearmanError('listen-failed', `the job server listens already${where}; close it first`);
    }
    this.#isStarting = true; // Node would listen twice, and close but one of the two
    try {
      await this.#start(port, host);
    } finally {
      this.#isStarting = false;
    }
    return this.address as ListenAddress;
  }

  async #start(port: number, host: string): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const onError = (cause: Error) => {
        const message = `the job server cannot listen on ${host}:${port}: ${cause.message}; is another one running there?`;
        reject(new GearmanError('listen-failed', message, { cause }));
      };
      this.#server.once('error', onError);
      this.#server.listen(port, host, () => {
        this.#server.off('error', onError);
        resolve();
      });
    });
  }

  /** New connections get these certificates; those that stand keep theirs. */
  setSecureContext(options: SecureContextOptions): void {
    if (!(this.#server instanceof tls.Server)) {
      throw new GearmanError(
        'invalid-argument',
        'the job server has no TLS; construct it with the option tls',
      );
    }
    try {
      this.#server.setSecureContext(options);
    } catch (cause) {
      throw unusable(cause);
    }
  }

  /** Takes no further connections. Resolves when all are over. */
  async stop(): Promise<void> {
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Cuts all connections. */
  destroySockets(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Before a TLS handshake, if there is one. */
  #onSocket(socket: Socket): void {
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_DELAY);
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
  }
}

/**
 * Connections that the limit of file descriptors has room for; undefined if unknown. Node silently closes
 * those beyond it.
 */
function descriptorLimit(): number | undefined {
  let limits: string;
  try {
    limits = readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return undefined; // another system than Linux
  }
  const openFiles = Number(/^Max open files +(\d+)/m.exec(limits)?.[1]);
  return Number.isNaN(openFiles) ? undefined : Math.max(1, openFiles - RESERVED_DESCRIPTORS);
}

/** Address of the peer, if it is still known: the socket may be closed. */
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
  const message = `the certificate or its key cannot be used: ${reason}; give both as PEM, one of them for the other`;
  return new GearmanError('invalid-argument', message, { cause });
}
