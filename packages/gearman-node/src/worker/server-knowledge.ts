import type { GearmanError } from '../errors.ts';

/**
 * Maximum factor by which the time limit of requests grows while a server stays silent. gearmand needs minutes for the
 * functions of a large fleet after its restart; a fixed limit would have the fleet reconnect and register without end.
 */
const MAX_FACTOR = 16;

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

  /** Time limit of requests in milliseconds. It doubles while one connection after another ends in silence. */
  get timeout(): number {
    return this.#timeout;
  }

  /** Records the end of a connection. */
  closed({ code }: GearmanError): void {
    this.#timeout =
      code === 'server-silent'
        ? Math.min(2 * this.#timeout, MAX_FACTOR * this.#shortestTimeout)
        : this.#shortestTimeout;
  }
}
