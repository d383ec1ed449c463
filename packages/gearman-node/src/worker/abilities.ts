/**
 * Number of functions above which RESET_ABILITIES may be used. At each CANT_DO gearmand searches all functions of a
 * worker. With 200,000 functions, this many CANT_DO block its other clients for 0.2 s.
 */
export const MANY = 128;

/**
 * Minimum fraction of all functions for RESET_ABILITIES. With 200,000 functions, gearmand takes 9 ms for a CANT_DO, and
 * 4 s to register all of them again in batches, between which it serves other clients.
 */
const RESET_PART = 0.01;

/**
 * The functions that one connection has registered with its server, wanted or no longer wanted. It computes the due
 * packets, but sends none.
 *
 * gearmand counts a repeated CAN_DO twice, and on a CANT_DO requeues the running jobs of the function. The Python
 * server disconnects a worker that sends CANT_DO for an unregistered function. So each packet is sent once, when it is
 * safe.
 */
export class Abilities<Handler> {
  readonly #registered = new Set<string>();
  /** Registered but unwanted functions, with the handlers for jobs that the server may still assign. */
  readonly #unwanted = new Map<string, Handler>();

  /** Number of functions registered with the server. */
  get size(): number {
    return this.#registered.size;
  }

  /** Adds functions. Returns those for which a CAN_DO is due. */
  want(names: Iterable<string>): string[] {
    const due: string[] = [];
    for (const name of names) {
      if (this.#unwanted.delete(name) || this.#registered.has(name)) continue;
      this.#registered.add(name);
      due.push(name);
    }
    return due;
  }

  /** Marks a function as unwanted; {@link takeRemovable} returns it when it is safe. */
  drop(name: string, handler: Handler): void {
    if (this.#registered.has(name)) this.#unwanted.set(name, handler);
  }

  /** The handler of an unwanted function whose jobs the server may still assign. */
  unwantedHandler(name: string): Handler | undefined {
    return this.#unwanted.get(name);
  }

  /** Returns whether a function could be removed if no grab were outstanding. */
  hasRemovable(isRunning: (name: string) => boolean): boolean {
    if (this.#unwanted.size === 0) return false; // called for every grab
    for (const name of this.#unwanted.keys()) {
      if (!isRunning(name)) return true;
    }
    return false;
  }

  /**
   * Removes unwanted functions without running jobs. Returns the due packets: RESET_ABILITIES and a CAN_DO for each
   * remaining function if no job is running and many functions are unwanted, else one CANT_DO for each of the first
   * functions.
   */
  takeRemovable(isRunning: (name: string) => boolean, isIdle: boolean): Removal {
    if (this.#unwanted.size === 0) return NOTHING;
    if (isIdle && this.#unwanted.size >= Math.max(MANY, this.size * RESET_PART)) {
      for (const name of this.#unwanted.keys()) this.#registered.delete(name);
      this.#unwanted.clear();
      return { reset: true, register: [...this.#registered] };
    }
    const removable: string[] = [];
    for (const name of this.#unwanted.keys()) {
      if (removable.length === MANY) break;
      if (!isRunning(name)) removable.push(name);
    }
    for (const name of removable) {
      this.#unwanted.delete(name);
      this.#registered.delete(name);
    }
    return { reset: false, deregister: removable };
  }
}

/** The packets that remove functions from a server. */
export type Removal =
  | { readonly reset: true; readonly register: readonly string[] }
  | { readonly reset: false; readonly deregister: readonly string[] };

const NOTHING: Removal = { reset: false, deregister: [] };
