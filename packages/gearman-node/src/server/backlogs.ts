import { BACKLOG, type ServerConnection } from './server-connection.ts';

/** Fraction of the limit after which the backlogs are added up: adding them up for each packet is too slow. */
const COUNTED_PART = 1 / 16;

/** Limits the number of bytes buffered for all slow peers together. */
export class Backlogs {
  readonly #limit: number;
  readonly #connections = new Set<ServerConnection>();
  /** Bytes added since the backlogs were last added up. */
  #added = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Registers `size` more bytes for a peer. Disconnects the slowest peer if the total exceeds the limit. */
  add(connection: ServerConnection, size: number): void {
    this.#connections.add(connection);
    this.#added += size;
    if (this.#added < this.#limit * COUNTED_PART) return;
    this.#added = 0;
    let total = 0;
    let slowest = connection;
    for (const each of this.#connections) {
      const { pendingBytes } = each;
      total += pendingBytes;
      if (pendingBytes > slowest.pendingBytes) slowest = each;
      if (pendingBytes <= BACKLOG && each !== connection) this.#connections.delete(each);
    }
    if (total > this.#limit) slowest.disconnect(`over ${this.#limit} bytes are buffered for slow peers`);
  }

  delete(connection: ServerConnection): void {
    this.#connections.delete(connection);
  }
}
