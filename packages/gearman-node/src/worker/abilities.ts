/**
 * What one connection has told its server it can do, and what of it is no longer wanted. Pure bookkeeping: it says
 * which packets are due, and sends none.
 *
 * gearmand counts a repeated CAN_DO twice, drops a job that runs when its function gets a CANT_DO, and python's
 * server hangs up on a CANT_DO for what was never registered. So each is due once, and only when it is safe.
 */
export class Abilities<Handler> {
  #registered = new Set<string>();
  /** Registered but not wanted, with the handler for a job that was assigned before the server knew. */
  readonly #unwanted = new Map<string, Handler>();

  /** How many functions the server believes this connection can do. */
  get size(): number {
    return this.#registered.size;
  }

  /** The functions are wanted from now on. Returns those for which a CAN_DO is due. */
  want(names: Iterable<string>): string[] {
    if (this.#registered.size === 0) {
      // The engine copies ten thousand at once in a fraction of the time that adding them one by one takes.
      this.#registered = new Set(names);
      return [...this.#registered];
    }
    const due: string[] = [];
    for (const name of names) {
      if (this.#unwanted.delete(name) || this.#registered.has(name)) continue;
      this.#registered.add(name);
      due.push(name);
    }
    return due;
  }

  /** The function is no longer wanted; the server is told when it is safe. */
  drop(name: string, handler: Handler): void {
    if (this.#registered.has(name)) this.#unwanted.set(name, handler);
  }

  /** The handler of a function that is not wanted and that the server may still assign. */
  unwantedHandler(name: string): Handler | undefined {
    return this.#unwanted.get(name);
  }

  /** Whether the server could be told of an unwanted function, were no grab outstanding. */
  hasRemovable(isRunning: (name: string) => boolean): boolean {
    for (const name of this.#unwanted.keys()) {
      if (!isRunning(name)) return true;
    }
    return false;
  }

  /**
   * Takes out the unwanted functions of which no job runs. Returns the packets that are due: one CANT_DO for each,
   * or, from `resetThreshold` functions on and when nothing at all runs, RESET_ABILITIES and what is left.
   */
  takeRemovable(isRunning: (name: string) => boolean, isIdle: boolean, resetThreshold: number): Removal {
    if (this.#unwanted.size === 0) return NOTHING;
    const removable = [...this.#unwanted.keys()].filter((name) => !isRunning(name));
    for (const name of removable) {
      this.#unwanted.delete(name);
      this.#registered.delete(name);
    }
    if (isIdle && removable.length >= resetThreshold) return { reset: true, register: [...this.#registered] };
    return { reset: false, deregister: removable };
  }
}

/** How a server is told of the functions that are gone. */
export type Removal =
  | { readonly reset: true; readonly register: readonly string[] }
  | { readonly reset: false; readonly deregister: readonly string[] };

const NOTHING: Removal = { reset: false, deregister: [] };
