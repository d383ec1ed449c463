import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type FileHandle, open, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import {
  asImageError,
  limitMode,
  makeStateDirectory,
  STATE_FILE,
} from '@nodepool-builder/image-builder/internal';
import { CommandError } from '../terms/command-error.ts';
import type { ExitReason } from '../terms/exit-codes.ts';
import { BACKGROUND_LOG, BACKGROUND_OPTION } from './serve-options.ts';

/** Message of the background process to the process that started it, with the outcome of the start. */
interface BackgroundReport {
  readonly error?: string;
  readonly exitReason?: ExitReason;
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
): Promise<{ readonly pid: number | undefined; readonly log: string }> {
  const { path, file } = await openLog(imagesDir);
  const program = [...process.execArgv, process.argv[1] ?? ''];
  const child = spawn(process.execPath, [...program, ...args, `${BACKGROUND_OPTION}=${path}`], {
    cwd: '/',
    detached: true,
    stdio: ['ignore', file.fd, file.fd, 'ipc'],
  });
  const ended = once(child, 'exit').then(([code, signal]): [BackgroundReport] => {
    const end = signal ?? `exit code ${code}`;
    return [{ error: `nodepool-builder ended at once with ${end}; see ${path} for the reason` }];
  });
  try {
    const [report] = await Promise.race([once(child, 'message'), ended]);
    const { error, exitReason = 'failed' }: BackgroundReport = report;
    if (error !== undefined) throw new CommandError(error, exitReason);
    return { pid: child.pid, log: path };
  } finally {
    child.removeAllListeners();
    if (child.connected) child.disconnect();
    child.unref();
    await file.close();
  }
}

async function openLog(imagesDir: string): Promise<{ readonly path: string; readonly file: FileHandle }> {
  try {
    const path = join(await realpath(imagesDir), BACKGROUND_LOG);
    await makeStateDirectory(dirname(path));
    await limitMode(path, STATE_FILE);
    return { path, file: await open(path, 'a', STATE_FILE) };
  } catch (error) {
    throw asImageError(error, `using "${imagesDir}" as images-dir`);
  }
}

/** In the background process: reports to the process that started it that it serves, or why it cannot. */
export async function reportToForeground(report: BackgroundReport): Promise<void> {
  if (process.send === undefined) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  process.send(report, undefined, undefined, () => resolve()); // that process may have ended, which is not an error
  await promise;
  if (process.connected) process.disconnect();
}
