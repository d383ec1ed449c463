import { stripVTControlCharacters } from 'node:util';
import { ImageError } from '../errors.ts';
import { formatRow, type ImageFormat } from '../formats.ts';
import type { CommandResult } from '../process/command.ts';
import { type Accelerator, machineArguments, optionValue, QEMU } from '../qemu/machine-arguments.ts';
import type { ValidationParts } from './image-validation.ts';

/** How many lines of the console an error shows. */
const LAST_LINES = 5;

/** How an image is booted, and what has to be seen. */
export interface BootValidation {
  /** A line on the serial console that tells that all is well; one that has not ended counts, as a prompt. */
  readonly expect: RegExp;
  /** Seconds in which the line has to come. Default 600. */
  readonly timeout?: number;
  /** Of the machine, in MiB. Default 1024. */
  readonly memory?: number;
  /** Default: `kvm`, and if QEMU fails with it `tcg`. */
  readonly accelerator?: Accelerator;
}

/**
 * Boots an image by its BIOS, without a network, and waits for a line on the serial console. What the machine
 * writes goes to a file in the build's directory: the image stays as it is.
 *
 * @throws ImageError `validation-failed`, `command-not-found`
 */
export async function bootImage(
  { expect, timeout = 600, memory = 1024, accelerator }: BootValidation,
  format: ImageFormat,
  parts: ValidationParts,
): Promise<void> {
  const { context, log } = parts;
  const over = AbortSignal.timeout(timeout * 1_000);
  const devices = deviceArguments(format, context.output(format));
  const boot = (by: Accelerator): Promise<Boot> =>
    runMachine([...machineArguments({ memory, accelerator: by }), ...devices], expect, over, parts);
  let outcome = await boot(accelerator ?? 'kvm');
  if (accelerator === undefined && isQemuFailure(outcome)) {
    context.log('KVM cannot be used: the machine is interpreted, which takes many times as long');
    outcome = await boot('tcg');
  }
  const { seen, ended, lastLines } = outcome;
  if (seen) return;
  const end =
    ended === undefined
      ? `within ${timeout} s`
      : `before QEMU ended with ${ended.signal ?? `exit code ${ended.exitCode}`}`;
  const shown = lastLines.length === 0 ? 'nothing' : log.mask(lastLines.join(' / '));
  throw new ImageError(
    'validation-failed',
    `image ${context.imageId} is not published: no line of its console matched ${String(expect)} ${end}; the last ` +
      `were: ${shown}; mend the image or what is expected of it, see ${log.path}`,
  );
}

/** What came of a boot. */
interface Boot {
  /** The machine said what is expected. */
  readonly seen: boolean;
  /** How QEMU ended, unless it was ended. */
  readonly ended?: CommandResult;
  /** Of the console, the one that has not ended included. */
  readonly lastLines: readonly string[];
}

/** A machine that is switched off ends QEMU with 0. */
function isQemuFailure({ seen, ended }: Boot): boolean {
  return !seen && ended !== undefined && ended.exitCode !== 0;
}

/** Runs a machine until it says what is expected, ends, or the time is over. */
async function runMachine(
  args: readonly string[],
  expect: RegExp,
  over: AbortSignal,
  { context, run }: ValidationParts,
): Promise<Boot> {
  const lines: string[] = [];
  let unfinished = '';
  const seen = new AbortController();
  const stop = AbortSignal.any([seen.signal, over]);
  const look = (line: string): void => {
    if (line.search(expect) >= 0) seen.abort();
  };
  const outcome = (): Boot => ({
    seen: seen.signal.aborted,
    lastLines: [...lines, unfinished.trim()].filter((line) => line !== '').slice(-LAST_LINES),
  });
  try {
    const ended = await run(QEMU, args, {
      env: { TMPDIR: context.directory },
      signal: stop,
      clean: stripVTControlCharacters,
      onPartialLine: (text) => {
        if (stop.aborted) return;
        unfinished = stripVTControlCharacters(text);
        look(unfinished);
      },
      onLine: (text) => {
        if (stop.aborted) return; // QEMU's last words are about the signal that it got
        const line = stripVTControlCharacters(text);
        unfinished = '';
        if (line.trim() !== '') lines.push(line.trim());
        lines.splice(0, lines.length - LAST_LINES);
        look(line);
      },
    });
    return { ...outcome(), ended };
  } catch (error) {
    context.signal.throwIfAborted();
    if (!stop.aborted) throw error;
    return outcome();
  }
}

function deviceArguments(format: ImageFormat, path: string): string[] {
  const { qemuDriver = '' } = formatRow(format);
  return [
    ['-nographic'], // so that the BIOS and what is written to the screen are seen, too
    ['-serial', 'stdio'],
    ['-monitor', 'none'],
    ['-nic', 'none'],
    ['-no-reboot'],
    ['-drive', `file=${optionValue(path)},format=${qemuDriver},if=virtio,snapshot=on`],
  ].flat();
}
