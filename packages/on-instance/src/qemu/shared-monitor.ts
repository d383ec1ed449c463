import { QmpConnection } from './qmp-connection.ts';

/** The one connection that a QEMU serves at a time, for all who talk to it; open while anybody does. */
export class SharedMonitor {
  readonly #path: string;
  #connection: Promise<QmpConnection | undefined> | undefined;
  #users = 0;

  /** @param path of QEMU's socket. */
  constructor(path: string) {
    this.#path = path;
  }

  /** The result of `work` with a connection; undefined if no QEMU is there. */
  async use<T>(work: (qmp: QmpConnection) => Promise<T>): Promise<T | undefined> {
    this.#connection ??= QmpConnection.open(this.#path);
    const connecting = this.#connection;
    this.#users += 1;
    try {
      const connection = await connecting;
      return connection && (await work(connection));
    } finally {
      this.#users -= 1;
      if (this.#users === 0) {
        this.#connection = undefined;
        await connecting.then(
          (connection) => connection?.close(),
          () => {}, // it was told above
        );
      }
    }
  }
}
