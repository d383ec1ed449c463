import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { constants } from 'node:fs';
import { lstat, open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { BUILD_LOG, BUILD_LOG_DIRECTORY, makeDirectory } from '../modes.ts';
import { UNTRICKED } from '../ownership.ts';
import { unlessMissing } from '../system-error.ts';
import type { Logger } from '../types.ts';
import { CappedFile } from './capped-file.ts';
import { createMask, visible } from './mask.ts';

export interface BuildLogOptions {
  readonly directory: string;
  readonly imageId: string;
  readonly imageName: string;
  /** Name of the log in errors, such as a command that prints it. Default: its path. */
  readonly shownAs?: string | undefined;
  /** Upload to which the log belongs, if it does not belong to a build. */
  readonly upload?: { readonly id: string; readonly provider: string };
  /** Number of logs to keep for the image name, and for it in each provider, including this one. Default 7. */
  readonly retention?: number | undefined;
  /** Default {@link BUILD_LOG_LIMIT}; for tests. */
  readonly limit?: number;
  /** Texts that are replaced by `***`. */
  readonly secrets?: readonly string[] | undefined;
  /** Called with each line. */
  readonly onLine: ((line: string) => void) | undefined;
  readonly logger: Logger | undefined;
}

/** Maximum size of a log in bytes. A longer log keeps only its beginning and its end. */
export const BUILD_LOG_LIMIT: number = 64 * 1024 * 1024;

/** First line of each log, which distinguishes it from files of other programs. */
export const LOG_BEGIN = '# image-name: ';

/** Log of one build: `<image-id>.log`. Its first line contains the image name. */
export class BuildLog {
  readonly path: string;
  /** Name of the log in errors. */
  readonly name: string;
  /** Masks the secrets in a text and escapes its control characters. */
  readonly mask: (text: string) => string;
  readonly #withoutSecrets: (text: string) => string;
  readonly #stream: CappedFile;
  readonly #onLine: ((line: string) => void) | undefined;
  #failed = false;
  /** Resolved when more can be written. */
  #drained: PromiseWithResolvers<void> | undefined;

  private constructor(
    path: string,
    stream: CappedFile,
    { shownAs, secrets, onLine, logger }: BuildLogOptions,
  ) {
    this.path = path;
    this.name = shownAs ?? path;
    this.#withoutSecrets = createMask(secrets);
    this.mask = (text) => visible(this.#withoutSecrets(text));
    this.#stream = stream;
    this.#onLine = onLine;
    stream.on('error', (error) => {
      // A build continues without its log.
      if (!this.#failed) logger?.warn(`the build log "${path}" is truncated: ${error.message}`);
      this.#failed = true;
    });
    const resolve = (): void => {
      this.#drained?.resolve();
      this.#drained = undefined;
    };
    stream.on('drain', resolve).on('close', resolve);
  }

  /** Opens the log, or continues the log of an earlier attempt, and removes the oldest logs. */
  static async open(options: BuildLogOptions): Promise<BuildLog> {
    const { directory, imageId, imageName, upload, retention = 7, limit = BUILD_LOG_LIMIT } = options;
    await makeDirectory(directory, BUILD_LOG_DIRECTORY);
    const path = join(directory, `${upload ? uploadLogName(imageId, upload.id) : imageId}.log`);
    const stream = await CappedFile.open(path, BUILD_LOG, limit);
    const log = new BuildLog(path, stream, options);
    const place = upload ? ` in ${JSON.stringify(upload.provider)}` : '';
    const header = `${LOG_BEGIN}${JSON.stringify(imageName)}${place}\n`;
    stream.write(`${header}# image-id: ${imageId}\n`);
    await removeOldLogs(directory, header, path, retention).catch((error: unknown) => {
      options.logger?.warn(`cannot remove old logs in "${directory}": ${String(error)}`);
    });
    return log;
  }

  /** Writes one or more lines, unless the log is closed. The promise resolves when more can be written. */
  write(text: string): Promise<void> | undefined {
    const lines = this.#linesOf(text);
    for (const line of lines) this.#onLine?.(line);
    return this.#append(lines);
  }

  /** Writes the reason of a failed build only to the log. `onLine` does not get it, because the caller reports it. */
  writeEnd(text: string): Promise<void> | undefined {
    return this.#append(this.#linesOf(text));
  }

  async close(): Promise<void> {
    if (this.#stream.closed) return;
    const closed = once(this.#stream, 'close').catch(() => undefined);
    this.#stream.end();
    await closed;
  }

  #append(lines: readonly string[]): Promise<void> | undefined {
    // An aborted builder may still write after the log was closed.
    const isClosed = this.#failed || this.#stream.writableEnded;
    if (isClosed || this.#stream.write(`${lines.join('\n')}\n`)) return undefined;
    this.#drained ??= Promise.withResolvers();
    return this.#drained.promise;
  }

  #linesOf(text: string): readonly string[] {
    return this.#withoutSecrets(text).split('\n').map(visible);
  }
}

/** Name of an upload's log without its extension. It is encoded, because an upload-id may have any characters. */
export function uploadLogName(imageId: string, uploadId: string): string {
  const hash = createHash('sha256').update(uploadId).digest('hex');
  return `${imageId}.${hash.slice(0, 16)}.upload`;
}

/** Removes all but the newest logs that begin with `header`, and `current`. */
async function removeOldLogs(
  directory: string,
  header: string,
  current: string,
  retention: number,
): Promise<void> {
  const logs: { path: string; mtimeMs: number }[] = [];
  for (const name of (await readdir(directory)).filter((entry) => entry.endsWith('.log'))) {
    const path = join(directory, name);
    if (path === current) continue;
    // Another build or upload of the image may remove it at the same time.
    const state = await unlessMissing(lstat(path));
    if (state?.isFile() && (await unlessMissing(startsWith(path, header))))
      logs.push({ path, mtimeMs: state.mtimeMs });
  }
  const newestFirst = logs.toSorted((one, other) => other.mtimeMs - one.mtimeMs);
  for (const { path } of newestFirst.slice(Math.max(retention - 1, 0))) {
    await rm(path, { force: true });
    for (const type of ['png', 'jpg']) await rm(screenshotPath(path, type), { force: true });
  }
}

async function startsWith(path: string, text: string): Promise<boolean> {
  const expected = Buffer.from(text);
  const file = await open(path, constants.O_RDONLY | UNTRICKED);
  try {
    const { buffer } = await file.read({ buffer: Buffer.alloc(expected.length), position: 0 });
    return buffer.equals(expected);
  } finally {
    await file.close();
  }
}

/** Path of the last screenshot of a build's machine, next to its log. */
export function screenshotPath(logPath: string, type = 'png'): string {
  return `${logPath.slice(0, -'.log'.length)}.${type}`;
}
