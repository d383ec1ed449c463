import { readFile } from 'node:fs/promises';
import { CommandError } from './command-error.ts';

/** PEM files of a TLS server. */
export interface TlsFiles {
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  /** Authority of clients' certificates. Without it, clients need no certificate. */
  readonly tlsCa?: string;
}

/** Contents of the files, for `node:tls`. */
export interface TlsSettings {
  readonly cert: string;
  readonly key: string;
  readonly ca?: string;
  readonly requestCert: boolean;
}

/**
 * Reads the files. Returns undefined if none is named.
 *
 * @throws CommandError for a certificate without its key, or a key without its certificate, and for a file that cannot be read.
 */
export async function readTlsFiles({ tlsCert, tlsKey, tlsCa }: TlsFiles): Promise<TlsSettings | undefined> {
  if ([tlsCert, tlsKey, tlsCa].every((file) => file === undefined)) return undefined;
  if (tlsCert === undefined || tlsKey === undefined) {
    throw new CommandError('TLS needs a certificate and its key; give both --tls-cert and --tls-key');
  }
  const [cert, key] = await Promise.all([readPem(tlsCert), readPem(tlsKey)]);
  if (tlsCa === undefined) return { cert, key, requestCert: false };
  return { cert, key, ca: await readPem(tlsCa), requestCert: true };
}

async function readPem(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new CommandError(`cannot read "${file}": ${reason}`, { cause });
  }
}
