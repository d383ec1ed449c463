import type { ConnectionOptions as TlsConnectionOptions } from 'node:tls';

/** The port that IANA assigned to Gearman. */
export const DEFAULT_PORT = 4730;

/** Where a job server listens. */
export interface ServerAddress {
  /** A name or an address. */
  readonly host: string;
  /** Default 4730. */
  readonly port?: number;
  /**
   * Speak TLS, with these options of `node:tls` (`ca`, `cert`, `key`, `servername`, …). A server that does not
   * speak TLS is then an error: there is no fallback to plain text. A function is asked before each connection, so
   * that renewed certificates count from the next one on.
   */
  readonly tls?: TlsConnectionOptions | (() => TlsConnectionOptions);
}

/** `host:port`, as messages and log lines name a server. */
export function formatAddress(address: ServerAddress): string {
  return `${address.host}:${address.port ?? DEFAULT_PORT}`;
}
