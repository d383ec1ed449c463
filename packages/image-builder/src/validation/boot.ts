import { stripVTControlCharacters } from 'node:util';
import type { CoreContext } from '../build/build-context.ts';
import type { BootValidation } from '../disk-image.ts';
import { ImageError } from '../errors.ts';
import { formatRow, type ImageFormat } from '../formats.ts';
import { type CommandResult, describeEnd } from '../process/command.ts';
import { type Accelerator, machineArguments, optionValue, QEMU } from '../qemu/machine-arguments.ts';

const LAST_LINES = 5;

/**
 * Boots an image with BIOS and without a network, and waits for a line on the serial console. The machine writes to a
 * temporary file in the build's directory, not to the image.
 *
 * @throws ImageError `validation-failed`, `command-not-found`
 */
export async function bootImage(
  { expect, timeout = 600, memory = 1024, accelerator }: BootValidation,
  format: ImageFormat,
  context: CoreContext,
): Promise<void> {
  const { buildLog: log } = context;
  const over = AbortSignal.timeout(timeout * 1_000);
  const devices = deviceArguments(format, context.outputPath(format));
  const boot = (by: Accelerator): Promise<FailedBoot | undefined> =>
    runMachine([...machineArguments(memory, by), ...devices], expect, over, context);
  let outcome = await boot(accelerator ?? 'kvm');
  // QEMU exits with 0 when the machine is switched off.
  const isFailure = outcome?.ended !== undefined && outcome.ended.exitCode !== 0;
  if (accelerator === undefined && isFailure) {
    context.log('KVM cannot be used; QEMU emulates the machine, which takes many times as long');
    outcome = await boot('tcg');
  }
  if (outcome === undefined) return;
  const { ended, lastLines } = outcome;
  const end = ended === undefined ? `within ${timeout} s` : `before QEMU ${describeEnd(ended)}`;
  const shown = lastLines.length === 0 ? 'nothing' : log.mask(lastLines.join(' / '));
  throw new ImageError(
    'validation-failed',
    `image ${context.imageId} is not published: no line of its console matched ${String(expect)} ${end}; the last ` +
      `were: ${shown}; correct the image or the expected line, see ${log.name}`,
  );
}

interface FailedBoot {
  /** Result of QEMU, unless this process ended it. */
  readonly ended?: CommandResult;
  /** Last lines of the console, including an incomplete one. */
  readonly lastLines: readonly string[];
}

/** Runs a machine until the expected line appears, QEMU ends, or the time is over. Returns undefined for a success. */
async function runMachine(
  args: readonly string[],
  expect: RegExp,
  over: AbortSignal,
  context: CoreContext,
): Promise<FailedBoot | undefined> {
  const lines: string[] = [];
  let unfinished = '';
  const seen = new AbortController();
  const stop = AbortSignal.any([seen.signal, over]);
  const look = (line: string): void => {
    if (line.search(expect) >= 0) seen.abort();
  };
  const outcome = (ended?: CommandResult): FailedBoot | undefined => {
    const lastLines = [...lines, unfinished.trim()].filter((line) => line !== '').slice(-LAST_LINES);
    return seen.signal.aborted
      ? undefined
      : { lastLines, ...(ended && { ended: { ...ended, decisiveLines: [] } }) };
  };
  try {
    const ended = await context.runLogged(QEMU, args, {
      signal: stop,
      clean: stripVTControlCharacters,
      onPartialLine: (text) => {
        if (stop.aborted) return;
        unfinished = stripVTControlCharacters(text);
        look(unfinished);
      },
      onLine: (text) => {
        if (stop.aborted) return; // QEMU reports the signal that ended it
        const line = stripVTControlCharacters(text);
        unfinished = '';
        if (line.trim() !== '') lines.push(line.trim());
        lines.splice(0, lines.length - LAST_LINES);
        look(line);
      },
    });
    return outcome(ended);
  } catch (error) {
    context.signal.throwIfAborted();
    if (!stop.aborted) throw error;
    return outcome();
  }
}

function deviceArguments(format: ImageFormat, path: string): string[] {
  const { qemuDriver = '' } = formatRow(format);
  return [
    ['-nographic'], // the console then includes the BIOS and the screen
    ['-serial', 'stdio'],
    ['-monitor', 'none'],
    ['-nic', 'none'],
    ['-no-reboot'],
    ['-drive', `file=${optionValue(path)},format=${qemuDriver},if=virtio,snapshot=on`],
  ].flat();
}
