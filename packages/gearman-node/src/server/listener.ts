import net, { type AddressInfo, type Socket } from 'node:net';
import tls, { type SecureContextOptions, type TlsOptions } from 'node:tls';
import { GearmanError } from '../errors.ts';
import type { Logger } from '../logger.ts';

/** A peer that vanished without a word is noticed after this many milliseconds and some probes. */
const KEEP_ALIVE_DELAY = 10_000;

/** Milliseconds that a TLS handshake may take. */
const HANDSHAKE_LIMIT = 10_000;

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

  constructor({ logger, tls: tlsOptions, maxConnections, onConnection }: ListenerOptions) {
    this.#server = tlsOptions ? createTlsServer(tlsOptions, onConnection) : net.createServer(onConnection);
    if (maxConnections !== undefined) this.#server.maxConnections = maxConnections;
    this.#server.on('connection', (socket) => this.#onSocket(socket));
    this.#server.on('drop', (data) =>
      logger?.warn(
        `a connection from ${data?.remoteAddress} was refused: there are ${maxConnections} already`,
      ),
    );
    this.#server.on('tlsClientError', (error: Error, socket: tls.TLSSocket) => {
      logger?.warn(
        `a TLS handshake with ${socket.remoteAddress ?? 'a peer'} failed: ${error.message.trim()}`,
      );
      socket.destroy(); // Node leaves it open after a time-out
    });
    this.#server.on('error', (error) => logger?.error(`the job server's listener failed: ${error.message}`));
  }

  /** Undefined while it does not listen. */
  get address(): ListenAddress | undefined {
    const address = this.#server.address() as AddressInfo | null;
    return address ? { host: address.address, port: address.port } : undefined;
  }

  /** @throws GearmanError `listen-failed` */
  async listen(port: number, host: string): Promise<ListenAddress> {
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
    return this.address as ListenAddress;
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
