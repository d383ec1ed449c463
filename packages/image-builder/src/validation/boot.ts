import { open } from 'node:fs/promises';
import { stripVTControlCharacters } from 'node:util';
import { ImageError } from '../errors.ts';
import { formatRow, type ImageFormat } from '../formats.ts';
import type { ValidationParts } from './image-validation.ts';

const QEMU = 'qemu-system-x86_64';

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
  /** What runs the machine's code. Default: `kvm` where `/dev/kvm` can be opened, else `tcg`, which is slow. */
  readonly accelerator?: 'kvm' | 'tcg';
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
  { context, run, log }: ValidationParts,
): Promise<void> {
  const { imageId, output, directory } = context;
  const lines: string[] = [];
  let unfinished = '';
  const seen = new AbortController();
  const over = AbortSignal.timeout(timeout * 1_000);
  const stop = AbortSignal.any([seen.signal, over]);
  const look = (line: string): void => {
    if (!stop.aborted && line.search(expect) >= 0) seen.abort();
  };
  const args = qemuArguments(format, output(format), memory, accelerator ?? (await bestAccelerator()));
  let end = `within ${timeout} s`;
  try {
    const result = await run(QEMU, args, {
      env: { TMPDIR: directory },
      signal: stop,
      clean: stripVTControlCharacters,
      onPartialLine: (text) => {
        unfinished = stripVTControlCharacters(text);
        look(unfinished);
      },
      onLine: (line) => {
        if (stop.aborted) return; // its last words are about the signal that it got
        unfinished = '';
        lines.push(stripVTControlCharacters(line));
        lines.splice(0, lines.length - 4 * LAST_LINES);
        look(lines.at(-1) ?? '');
      },
    });
    end = `before QEMU ended with ${result.signal ?? `exit code ${result.exitCode}`}`;
  } catch (error) {
    context.signal.throwIfAborted();
    if (!stop.aborted) throw error;
  }
  if (seen.signal.aborted) return;
  const last = [...lines, unfinished].filter((line) => line.trim() !== '').slice(-LAST_LINES);
  const shown = last.length === 0 ? 'nothing' : log.mask(last.map((line) => line.trim()).join(' / '));
  throw new ImageError(
    'validation-failed',
    `image ${imageId} is not published: no line of its console matched ${String(expect)} ${end}; the last were: ` +
      `${shown}; mend the image or what is expected of it, see ${log.path}`,
  );
}

function qemuArguments(format: ImageFormat, path: string, memory: number, accelerator: string): string[] {
  const { qemuDriver = '' } = formatRow(format);
  // In QEMU's notation of options two commas stand for one.
  const file = path.replaceAll(',', ',,');
  return [
    ['-nographic'], // so that the BIOS and what is written to the screen are seen, too
    ['-serial', 'stdio'],
    ['-monitor', 'none'],
    ['-nic', 'none'],
    ['-no-reboot'],
    ['-accel', accelerator],
    ['-cpu', 'max'],
    ['-m', `${memory}`],
    ['-drive', `file=${file},format=${qemuDriver},if=virtio,snapshot=on`],
  ].flat();
}

async function bestAccelerator(): Promise<'kvm' | 'tcg'> {
  try {
    const device = await open('/dev/kvm', 'r+');
    await device.close();
    return 'kvm';
  } catch {
    return 'tcg';
  }
}
