import { ImageError, type Instance } from '@nodepool-builder/image-builder';
import {
  BUILD_LOG,
  type FullBuildContext,
  limitMode,
  screenshotPath,
} from '@nodepool-builder/image-builder/internal';

/** Number of console lines in the log and in an error. */
const CONSOLE_LINES = 20;
const CONSOLE_LINES_IN_ERROR = 3;

/** Timeout for reading the console or the display, in milliseconds. */
const TIMEOUT = 10_000;

/**
 * Adds the state of the machine to an error. The console is logged, and a screenshot is saved next to the log.
 *
 * @param advice remedy at the end of the message
 */
export async function explainedError(
  error: unknown,
  instance: Instance | undefined,
  { buildLog }: Pick<FullBuildContext, 'buildLog'>,
  advice: string | undefined,
): Promise<unknown> {
  if (!(error instanceof ImageError)) return error;
  const parts = [error.message];
  const consoleLog = instance?.consoleLog({ signal: AbortSignal.timeout(TIMEOUT) });
  const lines = lastLines((await consoleLog?.catch(() => '')) ?? ''); // the console only explains the failure
  for (const line of lines) await buildLog.write(`console: ${line}`);
  if (lines.length > 0) {
    const end = lines.slice(-CONSOLE_LINES_IN_ERROR).join(' / ');
    parts.push(buildLog.mask(`its console ended with: ${end}`));
  }
  const screenshot = screenshotPath(buildLog.path, instance?.screenshotType);
  if (await hasScreenshot(instance, screenshot)) parts.push(`its display is in ${screenshot}`);
  if (advice !== undefined) parts.push(advice);
  parts.push(`see ${buildLog.name}`);
  return new ImageError(error.code, parts.join('; '), { cause: error });
}

function lastLines(consoleLog: string): string[] {
  const lines = consoleLog.split(/[\r\n]+/).filter((line) => line.trim() !== '');
  return lines.slice(-CONSOLE_LINES);
}

async function hasScreenshot(instance: Instance | undefined, path: string): Promise<boolean> {
  if (instance?.screenshot === undefined) return false;
  try {
    await instance.screenshot(path, { signal: AbortSignal.timeout(TIMEOUT) });
    await limitMode(path, BUILD_LOG);
    return true;
  } catch {
    return false;
  }
}
