import { createReadStream } from 'node:fs';
import type { InstanceAddress, Probe } from '@nodepool-builder/image-builder';
import { asImageError } from '@nodepool-builder/image-builder/internal';
import type { HostKey } from './ssh/host-key.ts';

/** A file to write to a machine. */
export interface RemoteFile {
  /** Path below the user's home directory, with `/` between the names. Missing directories are created. */
  readonly path: string;
  /** Absolute path of the local file, or the content. */
  readonly content: { readonly file: string } | { readonly text: string };
}

/** Settings of {@link RemoteShell.run}. */
export interface RemoteCommandOptions {
  readonly signal: AbortSignal;
  /** Called with each line of output. */
  readonly onLine: (line: string) => void | Promise<void>;
  /** Standard input. Default: it is closed. */
  readonly input?: AsyncIterable<Buffer>;
}

/** Result of a command on a machine. */
export interface RemoteResult {
  /** Exit code of the command; absent if a signal ended it. */
  readonly exitCode?: number;
  /** Name of the signal, such as `SIGTERM`. */
  readonly signal?: string;
}

/** The narrow interface to a login on a machine. */
export interface RemoteShell {
  /**
   * Runs a command line in the home directory.
   *
   * @throws ImageError `instance-failed` if the connection is lost
   * @throws the signal's reason; the command may continue
   */
  run(commandLine: string, options: RemoteCommandOptions): Promise<RemoteResult>;
  /**
   * Writes files that only their owner can read, replacing existing ones.
   *
   * @throws ImageError `instance-failed`, also if a file cannot be written; `directory-not-usable` if a local file cannot
   *   be read
   */
  put(files: readonly RemoteFile[], signal: AbortSignal): Promise<void>;
  /** True if the connection is closed. */
  readonly isClosed: boolean;
  close(): void;
}

/** Credentials for a machine and its identity. */
export interface Login {
  /** Pinned at the first login. */
  readonly hostKey: HostKey;
  readonly port: number;
  /** Reads the fingerprints that a console log announces; absent if the console is not used. */
  readonly announcedKeys?: (consoleLog: string) => ReadonlySet<string>;
  /** Checks whether the login service responds. */
  readonly probe: Probe;
  /**
   * @param password reads the password that the provider reports; undefined if there is none
   * @throws ImageError `host-key-changed` if another machine responds
   * @throws ImageError `login-refused` if the login fails, possibly only for now
   */
  connect(
    address: InstanceAddress,
    signal: AbortSignal,
    password?: () => Promise<string | undefined>,
  ): Promise<RemoteShell>;
  /** Describes the pinned identity of the machine and its source, for people. */
  describe(): string;
  /** Returns a command line for people who want to log in. */
  hint(address: InstanceAddress): string;
}

/** Formats an address as in URLs (RFC 3986, section 3.2), with IPv6 in brackets. */
export function authorityOf({ host, port }: InstanceAddress): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/**
 * Yields the content of a file for a machine in pieces.
 *
 * @param length maximum length of a piece in bytes; default 64 KiB
 * @throws ImageError `directory-not-usable` if the local file cannot be read
 */
export async function* piecesOf(
  content: RemoteFile['content'],
  length: number = 64 * 1024,
): AsyncGenerator<Buffer, void, undefined> {
  if ('file' in content) {
    try {
      yield* createReadStream(content.file, { highWaterMark: length });
    } catch (error) {
      throw asImageError(error, `reading "${content.file}"`);
    }
    return;
  }
  const bytes = Buffer.from(content.text);
  for (let start = 0; start < bytes.length; start += length) yield bytes.subarray(start, start + length);
}
