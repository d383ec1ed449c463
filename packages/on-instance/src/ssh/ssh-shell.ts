import { once } from 'node:events';
import { posix } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { ImageError } from '@nodepool-builder/image-builder';
import { asImageError, errnoOf, readLines, unlessAborted } from '@nodepool-builder/image-builder/internal';
import type { Client, ClientChannel, SFTPWrapper } from 'ssh2';
import { shellLiteral } from '../posix-scripts.ts';
import {
  piecesOf,
  type RemoteCommandOptions,
  type RemoteFile,
  type RemoteResult,
  type RemoteShell,
} from '../remote-shell.ts';

/**
 * Time for which the output may be silent after the end of a command, in milliseconds. A background process may keep
 * the output open forever.
 */
const LINGER_PERIOD = 1_000;

type Callback<T> = (error: Error | undefined, result: T) => void;

/** A shell over SSH. */
export class SshShell implements RemoteShell {
  readonly #client: Client;
  readonly #where: string;
  isClosed = false;
  #reason: Error | undefined;

  /**
   * @param client connected client
   * @param where user and machine, for messages
   */
  constructor(client: Client, where: string) {
    this.#client = client;
    this.#where = where;
    client.on('error', (error) => {
      this.#reason = error;
    });
    client.once('close', () => {
      this.isClosed = true;
    });
  }

  async put(files: readonly RemoteFile[], signal: AbortSignal): Promise<void> {
    const sftp = await this.#open<SFTPWrapper>((callback) => this.#client.sftp(callback), signal).catch(
      (error: unknown) => {
        if (signal.aborted || this.isClosed) throw error;
      },
    );
    const putting = sftp === undefined ? this.#putByCommand(files, signal) : this.#putBySftp(sftp, files);
    try {
      await unlessAborted(putting, signal);
    } finally {
      sftp?.end();
    }
  }

  close(): void {
    this.#client.destroy();
  }

  async run(commandLine: string, { signal, onLine, input }: RemoteCommandOptions): Promise<RemoteResult> {
    const end = Promise.withResolvers<RemoteResult | undefined>();
    const begin = (callback: Callback<ClientChannel>): unknown =>
      this.#client.exec(commandLine, (error, opened) => {
        // Registered synchronously, because the end of a short command arrives in the same packet.
        if (error === undefined) watchEnd(opened, end.resolve);
        callback(error, opened);
      });
    const channel = await this.#open(begin, signal);
    let lines = 0;
    const read = (stream: Readable): Promise<void> =>
      readLines(stream, (line) => {
        lines += 1;
        return onLine(line);
      });
    const reading = Promise.all([read(channel), read(channel.stderr)]);
    reading.catch(() => {}); // awaited below
    const closed = once(channel, 'close').catch(() => undefined);
    try {
      if (input === undefined) channel.end();
      else await unlessAborted(Promise.race([pipeline(input, channel), end.promise]), signal);
      const result = await unlessAborted(end.promise, signal);
      if (result === undefined) throw this.#failed('the connection was lost while a command ran');
      for (let seen = -1; !channel.closed && seen !== lines; ) {
        seen = lines;
        await unlessAborted(Promise.race([closed, delay(LINGER_PERIOD)]), signal);
      }
      channel.destroy();
      await unlessAborted(reading, signal);
      return result;
    } finally {
      channel.destroy();
    }
  }

  async #putBySftp(sftp: SFTPWrapper, files: readonly RemoteFile[]): Promise<void> {
    sftp.on('error', () => {}); // each call reports its error
    const directories = new Set(files.flatMap(({ path }) => parentsOf(path)));
    for (const directory of directories) {
      // The directory may exist. If it was not created, writing the files fails.
      await called((callback) => sftp.mkdir(directory, { mode: 0o700 }, callback)).catch(() => undefined);
    }
    for (const { path, content } of files) {
      const write = (callback: (error?: Error | null) => void): void =>
        'text' in content
          ? sftp.writeFile(path, content.text, { mode: 0o600 }, callback)
          : sftp.fastPut(content.file, path, { mode: 0o600 }, callback);
      await called(write).catch((error: unknown) => {
        const isHere = 'file' in content && errnoOf(error) !== undefined; // SFTP errors have numbers
        if (isHere) throw asImageError(error, `reading "${content.file}"`);
        throw this.#failed(`cannot write "${path}" there: ${String(error)}`, error);
      });
    }
  }

  /** Writes files by commands, for systems without SFTP, all of which have a POSIX shell. */
  async #putByCommand(files: readonly RemoteFile[], signal: AbortSignal): Promise<void> {
    for (const { path, content } of files) {
      const said: string[] = [];
      const directory = shellLiteral(posix.dirname(path));
      const command = `umask 077; mkdir -p ${directory} && cat > ${shellLiteral(path)}`;
      const onLine = (line: string): void => void said.push(line);
      const { exitCode } = await this.run(command, { signal, onLine, input: piecesOf(content) });
      if (exitCode !== 0) {
        throw this.#failed(`cannot write "${path}" there, without SFTP: ${said.join(' / ')}`);
      }
    }
  }

  async #open<T>(open: (callback: Callback<T>) => unknown, signal: AbortSignal): Promise<T> {
    const opened = Promise.withResolvers<T>();
    const onClose = (): void => opened.reject(this.#failed('the connection is lost'));
    try {
      if (this.isClosed) throw this.#failed('the connection is lost');
      this.#client.once('close', onClose);
      open((error, result) =>
        error === undefined ? opened.resolve(result) : opened.reject(this.#failed(error.message, error)),
      );
      return await unlessAborted(opened.promise, signal);
    } finally {
      this.#client.off('close', onClose);
    }
  }

  #failed(what: string, cause: unknown = this.#reason): ImageError {
    const why = this.#reason === undefined ? '' : ` (${this.#reason.message})`;
    return new ImageError('instance-failed', `${this.#where}: ${what}${why}; check its console log`, {
      cause,
    });
  }
}

/** Reports the exit status of a command; undefined if it is unknown. */
function watchEnd(channel: ClientChannel, onEnd: (result: RemoteResult | undefined) => void): void {
  channel.once('exit', (exitCode: number | null, name?: string) =>
    onEnd(exitCode === null ? { signal: name ?? 'a signal' } : { exitCode }),
  );
  channel.once('close', () => onEnd(undefined));
}

async function called(call: (callback: (error?: Error | null) => void) => void): Promise<void> {
  const error = await new Promise<Error | null | undefined>((resolve) => {
    call(resolve);
  });
  if (error instanceof Error) throw error;
}

/** Parent directories of a relative path, from the top. */
function parentsOf(path: string): string[] {
  const names = path.split('/').slice(0, -1);
  return names.map((_, index) => names.slice(0, index + 1).join('/'));
}
