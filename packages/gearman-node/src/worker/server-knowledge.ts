import type { GearmanError } from '../errors.ts';

/**
 * Maximum factor by which the time limit of requests grows while a server stays silent. After its restart, gearmand
 * needs minutes for the functions of a large fleet. With a fixed limit the fleet would reconnect and register without
 * end.
 */
const MAX_FACTOR = 16;

/** Number of a worker's functions that doubles its time limit, because every builder of its fleet registers as many. */
const MANY_FUNCTIONS = 1000;

/** State of a server that persists across connections to it. */
export class ServerKnowledge {
  /** True if the server replies to ECHO_REQ, which the Python server never does. */
  repliesToEcho: boolean | undefined;
  readonly #minTimeout: number;
  #timeout: number;

  /** @param timeout initial time limit of requests, in milliseconds */
  constructor(timeout: number) {
    this.#minTimeout = timeout;
    this.#timeout = timeout;
  }

  /**
   * Time limit of the requests on a connection, in milliseconds. It doubles while one connection after another ends in
   * silence, and grows with the number of functions that the worker registers. After a restart, the server replies only
   * when it has registered the functions of all workers.
   */
  timeoutFor(functions: number): number {
    const limit = this.#timeout * (1 + functions / MANY_FUNCTIONS);
    return Math.min(Math.round(limit), MAX_FACTOR * this.#minTimeout);
  }

  /** Records the end of a connection. */
  closed({ code }: GearmanError): void {
    this.#timeout =
      code === 'server-silent'
        ? Math.min(2 * this.#timeout, MAX_FACTOR * this.#minTimeout)
        : this.#minTimeout;
  }
}
