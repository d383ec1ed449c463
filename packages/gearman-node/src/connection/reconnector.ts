import type { Socket } from 'node:net';
import type { ConnectionError } from '../errors.ts';
import type { BackoffOptions } from './backoff.ts';
import { openSocket } from './open-socket.ts';
import { PacedServer } from './paced-server.ts';
import type { ServerAddress } from './server-address.ts';

/** Options of a {@link Reconnector}. */
export interface ReconnectorOptions extends BackoffOptions {
  /** Timeout of one attempt to connect, in milliseconds. */
  readonly timeout: number;
  /** Serves a new socket until it closes. It calls `onReply` when the server has replied to a request. */
  readonly serve: (socket: Socket, onReply: () => void) => Promise<void>;
  /** Called when an attempt to connect failed; the next one follows. */
  readonly onFailure: (error: ConnectionError) => void;
}

/** Keeps one connection to a server open. It reconnects with growing pauses whenever the connection is lost. */
export class Reconnector {
  readonly #server: PacedServer;
  readonly #options: ReconnectorOptions;
  readonly #stop = new AbortController();
  readonly #stopped: Promise<void>;

  /** @throws GearmanError `invalid-argument` */
  constructor(address: ServerAddress, options: ReconnectorOptions) {
    this.#server = new PacedServer(address, options);
    this.#options = options;
    this.#stopped = this.#run();
  }

  /** Stops reconnecting. Resolves when the current connection, if any, has closed. */
  async stop(): Promise<void> {
    this.#stop.abort(new Error('closing'));
    await this.#stopped;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await this.#connectOnce(signal);
      this.#server.lost();
      await this.#server.ready(signal);
    }
  }

  async #connectOnce(signal: AbortSignal): Promise<void> {
    const { timeout, serve, onFailure } = this.#options;
    let socket: Socket;
    try {
      socket = await openSocket(this.#server.address, { timeout, signal });
    } catch (error) {
      if (!signal.aborted) onFailure(error as ConnectionError);
      return;
    }
    await serve(socket, () => this.#server.replied());
  }
}
