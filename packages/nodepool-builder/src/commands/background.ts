import { spawn } from 'node:child_process';
import { CommandError } from './command-error.ts';

/** The option that tells the copy in the background what it is. */
export const BACKGROUND_OPTION = '--in-background';

/** What the copy in the background says once it serves, or when it cannot. */
interface BackgroundReport {
  readonly fault?: string;
}

/**
 * Starts this program again, detached from the terminal, with `/` as its directory and no standard streams, and
 * waits until it serves.
 *
 * @throws CommandError with the reason if it does not come up.
 */
export async function startInBackground(args: readonly string[]): Promise<void> {
  const script = process.argv[1] ?? '';
  const child = spawn(process.execPath, [...process.execArgv, script, ...args, BACKGROUND_OPTION], {
    cwd: '/',
    detached: true,
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  child.once('error', reject);
  child.once('exit', (code, signal) => {
    reject(
      new CommandError(`it ended at once with ${signal ?? `exit code ${code}`}; run it with -d to see why`),
    );
  });
  child.once('message', ({ fault }: BackgroundReport) => {
    if (fault === undefined) resolve();
    else reject(new CommandError(fault));
  });
  try {
    await promise;
  } finally {
    child.removeAllListeners();
    if (child.connected) child.disconnect();
    child.unref();
  }
}

/** In the copy: tells who started it that it serves, or why it does not. */
export async function reportToForeground(report: BackgroundReport): Promise<void> {
  if (process.send === undefined) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  process.send(report, undefined, undefined, () => resolve()); // who started it may be gone: that is no fault
  await promise;
  if (process.connected) process.disconnect();
}
