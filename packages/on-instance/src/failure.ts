import { type BuildContext, ImageError, type Instance, limitMode } from '@nodepool-builder/image-builder';
import { BUILD_LOG, screenshotPath } from '@nodepool-builder/image-builder/module-kit';
import type { RemoteResult } from './remote-shell.ts';

/** How many lines of the console the log shows, and how many an error. */
const CONSOLE_LINES = 20;
const CONSOLE_LINES_IN_ERROR = 3;

/** How long the console and the display may take to be read, in milliseconds. */
const PATIENCE = 10_000;

/** Why a step failed, with the end of what it said. */
export function stepFailed(
  name: string,
  { exitCode, signal }: RemoteResult,
  lastLines: readonly string[],
  { buildLog }: Pick<BuildContext, 'buildLog'>,
): ImageError {
  const said = lastLines.length === 0 ? '' : `, saying: ${lastLines.join(' / ')}`;
  const end = signal ?? `exit code ${exitCode}`;
  return new ImageError('command-failed', buildLog.mask(`${name} ended with ${end}${said}`));
}

/**
 * An error that says what the machine was at when it happened. The console goes to the log, the display beside it.
 *
 * @param advice what one can do, as the end of the message.
 */
export async function explainedError(
  error: unknown,
  instance: Instance | undefined,
  { buildLog }: Pick<BuildContext, 'buildLog'>,
  advice: string | undefined,
): Promise<unknown> {
  if (!(error instanceof ImageError)) return error;
  const parts = [error.message];
  if (instance !== undefined) {
    const lines = await consoleLines(instance);
    for (const line of lines) await buildLog.write(`console: ${line}`);
    if (lines.length > 0) {
      const end = lines.slice(-CONSOLE_LINES_IN_ERROR).join(' / ');
      parts.push(buildLog.mask(`its console ended with: ${end}`));
    }
    const screenshot = await shoot(instance, screenshotPath(buildLog.path));
    if (screenshot !== undefined) parts.push(`its display is in ${screenshot}`);
  }
  if (advice !== undefined) parts.push(advice);
  parts.push(`see ${buildLog.path}`);
  return new ImageError(error.code, parts.join('; '), { cause: error });
}

async function consoleLines(instance: Instance): Promise<string[]> {
  try {
    const text = await instance.consoleLog({ signal: AbortSignal.timeout(PATIENCE) });
    const lines = text.split(/[\r\n]+/).filter((line) => line.trim() !== '');
    return lines.slice(-CONSOLE_LINES);
  } catch {
    return []; // it would explain the failure, and must not hide it
  }
}

async function shoot(instance: Instance, path: string): Promise<string | undefined> {
  try {
    await instance.screenshot?.(path, { signal: AbortSignal.timeout(PATIENCE) });
    await limitMode(path, BUILD_LOG);
    return instance.screenshot === undefined ? undefined : path;
  } catch {
    return undefined;
  }
}
