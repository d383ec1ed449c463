import type { Socket } from 'node:net';
import type { ConnectionError } from '../errors.ts';
import type { BackoffOptions } from './backoff.ts';
import { openSocket } from './open-socket.ts';
import { PacedServer } from './paced-server.ts';
import type { ServerAddress } from './server-address.ts';

/** How a {@link Reconnector} is set up. */
export interface ReconnectorOptions extends BackoffOptions {
  /** Milliseconds an attempt to connect may take. */
  readonly timeout: number;
  /** Uses a new socket; resolves when its connection is over. `onAnswer` is to be called when a request was answered. */
  readonly serve: (socket: Socket, onAnswer: () => void) => Promise<void>;
  /** An attempt to connect failed; the next one follows. */
  readonly onFailure: (error: ConnectionError) => void;
}

/** Keeps one connection to a server: opens it, and opens it again, with growing pauses, whenever it is lost. */
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

  /** Opens no further connection. Resolves when the one that is open, if any, is over. */
  async stop(): Promise<void> {
    this.#stop.abort(new Error('it is being closed'));
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
    await serve(socket, () => this.#server.answered());
  }
}
