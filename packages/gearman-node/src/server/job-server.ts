import type { TlsOptions } from 'node:tls';
import { GearmanError } from '../errors.ts';
import type { Logger } from '../logger.ts';

/** How a {@link JobServer} is set up. */
export interface JobServerOptions {
  readonly logger?: Logger;
  /** Accept TLS connections only, with these options of `node:tls`. */
  readonly tls?: TlsOptions;
  /** Bytes of the largest packet that is taken. Default 64 MiB. */
  readonly maxPacketSize?: number;
  /** Bytes kept for a peer that does not read before it is cut off. Default 64 MiB. */
  readonly maxOutputBuffer?: number;
}

/** A job server in this process: the same protocol as gearmand, admin text protocol included. */
export class JobServer implements AsyncDisposable {
  constructor(_options: JobServerOptions = {}) {}

  /** Where the server listens; undefined until it does. */
  get address(): { readonly host: string; readonly port: number } | undefined {
    throw new GearmanError('closed', 'not there yet');
  }

  /** Starts to listen. @param port default 4730; 0 takes a free one. @param host default 127.0.0.1 */
  async listen(_port = 4730, _host = '127.0.0.1'): Promise<{ readonly host: string; readonly port: number }> {
    throw new GearmanError('closed', 'not there yet');
  }

  async close(): Promise<void> {
    throw new GearmanError('closed', 'not there yet');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
