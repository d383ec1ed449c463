import { Client, type ClientConfig, types } from 'pg';
import { StoreError, type StoreErrorCode } from '../errors.ts';

/** Settings of a connection to a database. */
export interface PostgresAccess {
  readonly config: ClientConfig;
  /** The database without user and password, for messages. */
  readonly location: string;
}

/** Timeout for connecting, in milliseconds. */
const CONNECT_TIMEOUT = 5000;

const INT8 = 20;

/** Remedies by SQLSTATE. */
const REMEDIES: Readonly<Record<string, string>> = {
  '28000': 'check user and password',
  '28P01': 'check user and password',
  '3D000': 'create it with createdb',
  '42501': 'allow this user to create a schema, or make it the owner of schema "image_manager"',
  '42704': 'it must be PostgreSQL 14 or newer',
};

/** SQLSTATEs of a wrong user or password, and of missing rights. */
const REFUSED: ReadonlySet<string> = new Set(['28000', '28P01', '42501']);

/** SQLSTATEs of lost connections and of a server that is starting, stopping or out of connections. */
const UNREACHABLE = /^(?:08...|57P0[1-3]|53300)$/;

/**
 * Parses a URL as libpq does.
 *
 * @throws StoreError `store-not-usable` if the URL is invalid
 */
export function parseAccess(url: string): PostgresAccess {
  const config: ClientConfig = {
    connectionString: withLibpqModes(url),
    application_name: 'nodepool-builder',
    connectionTimeoutMillis: CONNECT_TIMEOUT,
    keepAlive: true,
    types: {
      getTypeParser: (type: number, format?: 'text' | 'binary') =>
        type === INT8 ? Number : types.getTypeParser(type, format),
    },
  };
  try {
    const { host, port, database } = new Client(config);
    return { config, location: `PostgreSQL database "${database}" at ${host}:${port}` };
  } catch (error) {
    // The cause is omitted, because it may contain the URL with its password.
    const { code } = error as NodeJS.ErrnoException;
    const reason = code === 'ERR_INVALID_URL' ? 'it is not a URL' : (error as Error).message;
    throw new StoreError(
      'store-not-usable',
      `the URL of the PostgreSQL database cannot be used: ${reason}; write postgresql://USER@HOST/DATABASE`,
    );
  }
}

/**
 * Converts an error to a StoreError with a remedy. Returns a StoreError unchanged.
 *
 * @param otherwise code of an error that neither the server nor the system explains
 */
export function asStoreError(
  error: unknown,
  location: string,
  otherwise: StoreErrorCode = 'store-not-usable',
): StoreError {
  if (error instanceof StoreError) return error;
  const { message, code = '', syscall = '' } = error as NodeJS.ErrnoException;
  const remedy = REMEDIES[code] ?? 'check that it runs and can be reached';
  const text = `${location} cannot be used: ${message || code}; ${remedy}`;
  const isLost = ['connect', 'getaddrinfo', 'read', 'write'].includes(syscall) || UNREACHABLE.test(code);
  const known = REFUSED.has(code) ? 'store-refused' : isLost && 'store-unreachable';
  return new StoreError(known || (code === '' ? otherwise : 'store-not-usable'), text, { cause: error });
}

/** Makes pg read `sslmode` like libpq, because pg gives it another meaning by default. */
function withLibpqModes(url: string): string {
  if (/[?&]uselibpqcompat=/.test(url)) return url;
  return `${url}${url.includes('?') ? '&' : '?'}uselibpqcompat=true`;
}
