import { QmpConnection } from './qmp-connection.ts';

/** Shares the only connection that QEMU serves among all users. It is open while it has users. */
export class SharedMonitor {
  readonly #path: string;
  #connection: Promise<QmpConnection | undefined> | undefined;
  #users = 0;

  /** @param path of QEMU's socket */
  constructor(path: string) {
    this.#path = path;
  }

  /** Runs `work` with the connection and returns its result; undefined if QEMU does not run. */
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
          () => {}, // reported above
        );
      }
    }
  }
}
