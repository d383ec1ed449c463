import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { ConnectionError } from '../errors.ts';
import { Backoff, type BackoffOptions } from './backoff.ts';
import { openSocket } from './open-socket.ts';
import type { ServerAddress } from './server-address.ts';

/** How a {@link Reconnector} is set up. */
export interface ReconnectorOptions extends BackoffOptions {
  /** Milliseconds an attempt to connect may take. */
  readonly timeout: number;
  /** Uses a new socket; resolves when its connection is over. */
  readonly serve: (socket: Socket) => Promise<void>;
  /** An attempt to connect failed; the next one follows. */
  readonly onFailure: (error: ConnectionError) => void;
}

/** Keeps one connection to a server: opens it, and opens it again, with growing pauses, whenever it is lost. */
export class Reconnector {
  readonly #address: ServerAddress;
  readonly #options: ReconnectorOptions;
  readonly #stop = new AbortController();
  readonly #stopped: Promise<void>;

  constructor(address: ServerAddress, options: ReconnectorOptions) {
    this.#address = address;
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
    const backoff = new Backoff(this.#options);
    while (!signal.aborted) {
      const lifetime = await this.#connectOnce(signal);
      // A server that accepts and hangs up at once is no better than one that is down.
      if (lifetime > backoff.maxDelay) backoff.reset();
      await delay(backoff.next(), undefined, { signal }).catch(() => {});
    }
  }

  /** Returns how long the connection lasted, in milliseconds. */
  async #connectOnce(signal: AbortSignal): Promise<number> {
    const { timeout, serve, onFailure } = this.#options;
    let socket: Socket;
    try {
      socket = await openSocket(this.#address, { timeout, signal });
    } catch (error) {
      if (!signal.aborted) onFailure(error as ConnectionError);
      return 0;
    }
    const start = performance.now();
    await serve(socket);
    return performance.now() - start;
  }
}
