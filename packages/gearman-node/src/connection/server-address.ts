import type { ConnectionOptions as TlsConnectionOptions } from 'node:tls';

/** The port that IANA assigned to Gearman. */
export const DEFAULT_PORT = 4730;

export interface ServerAddress {
  /** Host name or IP address. */
  readonly host: string;
  /** TCP port. Default 4730. */
  readonly port?: number;
  /**
   * Connect over TLS, with these options of `node:tls` (`ca`, `cert`, `key`, `servername`, …), without a fallback to
   * plain text. A function is called before each connection, so that new connections use renewed certificates.
   */
  readonly tls?: TlsConnectionOptions | (() => TlsConnectionOptions);
}

/** Formats an address as `host:port` for messages. */
export function formatAddress(address: ServerAddress): string {
  return `${address.host}:${address.port ?? DEFAULT_PORT}`;
}
