import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { BUILD_LOG, BUILD_LOG_DIRECTORY, setMode } from '../modes.ts';
import type { Logger } from '../types.ts';
import { CappedFile } from './capped-file.ts';
import { createMask } from './mask.ts';
import { visible } from './visible.ts';

/** How many logs of one image name are kept, unless an option says otherwise. */
const RETENTION = 7;

/** Default size limit of a log, in bytes. */
const LIMIT = 64 * 1024 * 1024;

const HEADER = /^# image-name: (.*)$/;

/** What a {@link BuildLog} is opened with. */
export interface BuildLogOptions {
  readonly directory: string;
  readonly imageId: string;
  readonly imageName: string;
  /** How many logs of one image name are kept, this one included. Default 7. */
  readonly retention?: number | undefined;
  /** Size limit of the log in bytes; beyond it, only its beginning and its end are kept. Default 64 MiB. */
  readonly limit?: number | undefined;
  /** What is not to be shown: `***` stands in its place. */
  readonly secrets?: readonly string[] | undefined;
  /** Told each line as well. */
  readonly onLine: ((line: string) => void) | undefined;
  readonly logger: Logger | undefined;
}

/** The output of one build: `<image-id>.log`. Its first line has the image's name. */
export class BuildLog {
  readonly path: string;
  /** Takes the secrets out of a text, and shows its control characters. */
  readonly mask: (text: string) => string;
  readonly #withoutSecrets: (text: string) => string;
  readonly #stream: CappedFile;
  readonly #onLine: ((line: string) => void) | undefined;
  #failed = false;

  private constructor(path: string, stream: CappedFile, { secrets, onLine, logger }: BuildLogOptions) {
    this.path = path;
    this.#withoutSecrets = createMask(secrets);
    this.mask = (text) => visible(this.#withoutSecrets(text));
    this.#stream = stream;
    this.#onLine = onLine;
    stream.on('error', (error) => {
      // A log that cannot be written is no reason to stop a build.
      if (!this.#failed) logger?.warn(`the build log "${path}" is cut short: ${error.message}`);
      this.#failed = true;
    });
  }

  /** Opens the log; one of an earlier attempt at the same image is continued. Removes the oldest logs. */
  static async open(options: BuildLogOptions): Promise<BuildLog> {
    const { directory, imageId, imageName, retention = RETENTION, limit = LIMIT } = options;
    await mkdir(directory, { recursive: true, mode: BUILD_LOG_DIRECTORY });
    const path = join(directory, `${imageId}.log`);
    const stream = await CappedFile.open(path, BUILD_LOG, limit);
    await setMode(path, BUILD_LOG);
    const log = new BuildLog(path, stream, options);
    stream.write(`# image-name: ${JSON.stringify(imageName)}\n# image-id: ${imageId}\n`);
    await removeOldLogs(directory, imageName, path, retention);
    return log;
  }

  /** Writes a line, or several, unless the log is closed. The promise resolves once the disk has caught up. */
  write(text: string): Promise<void> | undefined {
    const lines = this.#withoutSecrets(text).split('\n').map(visible);
    for (const line of lines) this.#onLine?.(line);
    // An abandoned builder may still write when the log is closed.
    const isClosed = this.#failed || this.#stream.writableEnded;
    if (isClosed || this.#stream.write(`${lines.join('\n')}\n`)) return undefined;
    return new Promise((resolve) => {
      this.#stream.once('drain', resolve).once('close', resolve);
    });
  }

  async close(): Promise<void> {
    if (this.#stream.closed) return;
    const closed = once(this.#stream, 'close').catch(() => undefined);
    this.#stream.end();
    await closed;
  }
}

/** Keeps the newest logs of the image name, `current` among them. */
async function removeOldLogs(
  directory: string,
  imageName: string,
  current: string,
  retention: number,
): Promise<void> {
  const logs: { path: string; mtimeMs: number }[] = [];
  for (const name of (await readdir(directory)).filter((entry) => entry.endsWith('.log'))) {
    const path = join(directory, name);
    if (path !== current && (await readImageName(path)) === imageName) {
      logs.push({ path, mtimeMs: (await stat(path)).mtimeMs });
    }
  }
  const newestFirst = logs.toSorted((one, other) => other.mtimeMs - one.mtimeMs);
  for (const { path } of newestFirst.slice(Math.max(retention - 1, 0))) {
    await rm(path, { force: true });
    await rm(screenshotPath(path), { force: true });
  }
}

/** Where the last that was seen of the display of a build's machine lies: beside its log. */
export function screenshotPath(logPath: string): string {
  return `${logPath.slice(0, -'.log'.length)}.png`;
}

/** The name in the first line of a log; undefined for a file that is none. */
async function readImageName(path: string): Promise<string | undefined> {
  const stream = createReadStream(path, { end: 4095 });
  for await (const line of createInterface(stream)) {
    stream.destroy();
    const name = HEADER.exec(line)?.[1];
    try {
      return name === undefined ? undefined : String(JSON.parse(name));
    } catch {
      return undefined;
    }
  }
  return undefined;
}
