import type { GearmanError } from '../errors.ts';

/**
 * Maximum factor by which the time limit of requests grows while a server stays silent. gearmand needs minutes for the
 * functions of a large fleet after its restart; a fixed limit would have the fleet reconnect and register without end.
 */
const MAX_FACTOR = 16;

/** Number of functions of a worker that doubles its time limit: those of its fleet are as many for each builder. */
const MANY_FUNCTIONS = 1000;

/** Knowledge about a server, from all connections to it, including earlier ones. */
export class ServerKnowledge {
  /** Whether the server answers ECHO_REQ: the Python server never does. */
  answersEcho: boolean | undefined;
  readonly #shortestTimeout: number;
  #timeout: number;

  /** @param timeout initial time limit of requests, in milliseconds */
  constructor(timeout: number) {
    this.#shortestTimeout = timeout;
    this.#timeout = timeout;
  }

  /**
   * Time limit of the requests on a connection, in milliseconds. It doubles while one connection after another ends in
   * silence, and grows with the number of functions that the worker registers: after a restart, the server answers only
   * when it has registered those of all workers.
   */
  timeoutFor(functions: number): number {
    const limit = this.#timeout * (1 + functions / MANY_FUNCTIONS);
    return Math.min(Math.round(limit), MAX_FACTOR * this.#shortestTimeout);
  }

  /** Records the end of a connection. */
  closed({ code }: GearmanError): void {
    this.#timeout =
      code === 'server-silent'
        ? Math.min(2 * this.#timeout, MAX_FACTOR * this.#shortestTimeout)
        : this.#shortestTimeout;
  }
}
