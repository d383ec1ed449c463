import { spawn } from 'node:child_process';
import { type FileHandle, open, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { asImageError, limitMode, makeStateDirectory } from '@nodepool-builder/image-builder/module-kit';
import { CommandError } from './command-error.ts';

/** Option of the background process: the path of its log, which also gets standard output and standard error. */
export const BACKGROUND_OPTION = '--in-background';

/** Default path of the log of the background process, relative to `images-dir`. */
export const BACKGROUND_LOG = '.nodepool-builder/nodepool-builder.log';

/** Mode of the log, as of the state files beside it. */
const LOG_MODE = 0o600;

/** Message of the background process to the process that started it: it serves, or it cannot. */
interface BackgroundReport {
  readonly fault?: string;
}

/** The daemon in the background. */
export interface BackgroundProcess {
  readonly pid: number | undefined;
  /** Path of its log. */
  readonly log: string;
}

/**
 * Starts this program again, detached from the terminal, in the directory `/`, with the log as its standard output and
 * standard error, and waits until it serves.
 *
 * @param imagesDir directory with the log
 * @throws CommandError with the reason if it fails to start; ImageError if the log cannot be opened
 */
export async function startInBackground(
  args: readonly string[],
  imagesDir: string,
): Promise<BackgroundProcess> {
  const log = await openLog(imagesDir);
  try {
    return { pid: await start([...args, `${BACKGROUND_OPTION}=${log.path}`], log), log: log.path };
  } finally {
    await log.file.close();
  }
}

interface BackgroundLog {
  readonly path: string;
  readonly file: FileHandle;
}

async function openLog(imagesDir: string): Promise<BackgroundLog> {
  try {
    const path = join(await realpath(imagesDir), BACKGROUND_LOG);
    await makeStateDirectory(join(path, '..'));
    await limitMode(path, LOG_MODE);
    return { path, file: await open(path, 'a', LOG_MODE) };
  } catch (error) {
    throw asImageError(error, `using "${imagesDir}" as images-dir`);
  }
}

async function start(args: readonly string[], { path, file }: BackgroundLog): Promise<number | undefined> {
  const script = process.argv[1] ?? '';
  const child = spawn(process.execPath, [...process.execArgv, script, ...args], {
    cwd: '/',
    detached: true,
    stdio: ['ignore', file.fd, file.fd, 'ipc'],
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  child.once('error', reject);
  child.once('exit', (code, signal) => {
    reject(
      new CommandError(
        `nodepool-builder ended at once with ${signal ?? `exit code ${code}`}; see ${path} for the reason`,
      ),
    );
  });
  child.once('message', ({ fault }: BackgroundReport) => {
    if (fault === undefined) resolve();
    else reject(new CommandError(fault));
  });
  try {
    await promise;
    return child.pid;
  } finally {
    child.removeAllListeners();
    if (child.connected) child.disconnect();
    child.unref();
  }
}

/** In the background process: tells the process that started it that it serves, or why it cannot. */
export async function reportToForeground(report: BackgroundReport): Promise<void> {
  if (process.send === undefined) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  process.send(report, undefined, undefined, () => resolve()); // that process may be gone: not an error
  await promise;
  if (process.connected) process.disconnect();
}
