import { BACKLOG, type ServerConnection } from './server-connection.ts';

/** The peers are counted after this fraction of the limit was added: counting per packet is too slow. */
const COUNTED_PART = 1 / 16;

/** The peers that are slow to read. Together they may hold up a limited number of bytes. */
export class Backlogs {
  readonly #limit: number;
  readonly #connections = new Set<ServerConnection>();
  /** Bytes added since the last count. */
  #added = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Registers `size` more bytes for a peer. Disconnects the slowest one if too many bytes wait for all of them. */
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
    if (total > this.#limit) slowest.cutOff(`over ${this.#limit} bytes wait for it and others`);
  }

  delete(connection: ServerConnection): void {
    this.#connections.delete(connection);
  }
}
