import { BACKLOG, type ServerConnection } from './server-connection.ts';

/** The peers that are slow to read. Together they may hold up a limited number of bytes. */
export class Backlogs {
  readonly #limit: number;
  readonly #connections = new Set<ServerConnection>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Registers a slow peer. Disconnects the slowest one if too many bytes wait for all of them. */
  add(connection: ServerConnection): void {
    this.#connections.add(connection);
    let total = 0;
    let slowest = connection;
    for (const each of this.#connections) {
      if (each.pendingBytes <= BACKLOG) this.#connections.delete(each);
      total += each.pendingBytes;
      if (each.pendingBytes > slowest.pendingBytes) slowest = each;
    }
    if (total > this.#limit) slowest.cutOff(`over ${this.#limit} bytes wait for it and others`);
  }

  delete(connection: ServerConnection): void {
    this.#connections.delete(connection);
  }
}
