import { Client, type ClientConfig, types } from 'pg';
import { StoreError } from '../errors.ts';

/** Access to a database. */
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
    // The cause is left out, because it may have the URL with its password.
    const { code } = error as NodeJS.ErrnoException;
    const reason = code === 'ERR_INVALID_URL' ? 'it is not a URL' : (error as Error).message;
    throw new StoreError(
      'store-not-usable',
      `the URL of the PostgreSQL database cannot be used: ${reason}; write postgresql://USER@HOST/DATABASE`,
    );
  }
}

/** Converts an error to a StoreError with a remedy. A StoreError is returned as it is. */
export function asStoreError(error: unknown, location: string): StoreError {
  if (error instanceof StoreError) return error;
  const { message, code = '' } = error as NodeJS.ErrnoException;
  const remedy = REMEDIES[code] ?? 'check that it runs and can be reached';
  return new StoreError('store-not-usable', `${location} cannot be used: ${message || code}; ${remedy}`, {
    cause: error,
  });
}

/** Makes pg read `sslmode` as libpq does; by default pg gives it another meaning. */
function withLibpqModes(url: string): string {
  if (/[?&]uselibpqcompat=/.test(url)) return url;
  return `${url}${url.includes('?') ? '&' : '?'}uselibpqcompat=true`;
}
