import { Client, type ClientConfig, types } from 'pg';
import { StoreError } from '../errors.ts';

/** How a database is reached. */
export interface PostgresAccess {
  readonly config: ClientConfig;
  /** For messages: without user and password. */
  readonly location: string;
}

/** How long a connection may take to come about, in milliseconds. */
const CONNECT_TIMEOUT = 5000;

const INT8 = 20;

/** SQLSTATEs and errors of the system, and what to do about them. */
const REMEDIES: Readonly<Record<string, string>> = {
  '28000': 'check user and password',
  '28P01': 'check user and password',
  '3D000': 'make it with createdb',
  '42501': 'let this user create a schema there, or own the schema "image_manager"',
  '42704': 'it must be PostgreSQL 14 or newer',
};

/**
 * Reads a URL as libpq does.
 *
 * @throws StoreError `store-not-usable` if it is none
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
    // No cause: the URL, with its password, may be part of it.
    const { code } = error as NodeJS.ErrnoException;
    const reason = code === 'ERR_INVALID_URL' ? 'it is no URL' : (error as Error).message;
    throw new StoreError(
      'store-not-usable',
      `the URL of the PostgreSQL database cannot be used: ${reason}; write postgresql://USER@HOST/DATABASE`,
    );
  }
}

/** The error as callers know it, with a remedy; one that is a StoreError stays what it is. */
export function asStoreError(error: unknown, location: string): StoreError {
  if (error instanceof StoreError) return error;
  const { message, code = '' } = error as NodeJS.ErrnoException;
  const remedy = REMEDIES[code] ?? 'see whether it runs and can be reached';
  return new StoreError('store-not-usable', `${location} cannot be used: ${message || code}; ${remedy}`, {
    cause: error,
  });
}

/** `sslmode` means what libpq says that it means: pg has a meaning of its own unless it is told. */
function withLibpqModes(url: string): string {
  if (/[?&]uselibpqcompat=/.test(url)) return url;
  return `${url}${url.includes('?') ? '&' : '?'}uselibpqcompat=true`;
}
