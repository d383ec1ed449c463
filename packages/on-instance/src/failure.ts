import { type BuildContext, ImageError, type Instance } from '@nodepool-builder/image-builder';
import { BUILD_LOG, limitMode, screenshotPath } from '@nodepool-builder/image-builder/module-kit';
import type { RemoteResult } from './remote-shell.ts';

/** Number of console lines in the log and in an error. */
const CONSOLE_LINES = 20;
const CONSOLE_LINES_IN_ERROR = 3;

/** Time limit for reading the console and the display, in milliseconds. */
const PATIENCE = 10_000;

/** Reason of a failed step, with the end of its output. */
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
 * Adds the state of the machine to an error. The console is logged, and a screenshot is saved beside the log.
 *
 * @param advice remedy at the end of the message
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
    return []; // the console only explains the failure
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
