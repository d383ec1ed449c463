import { ImageError } from '@nodepool-builder/image-builder';
import { withTimeout } from '@nodepool-builder/image-builder/internal';
import { type Machine, type MachineParts, SCRIPT_LANGUAGES } from './machine.ts';

/**
 * Powers the system off, after sysprep if configured, and waits until it is off. If that fails or there is no login, it
 * presses the power button.
 *
 * @param machine absent without a login since a crash
 * @throws ImageError `instance-failed` if it stays on; `command-failed` if sysprep fails
 */
export async function powerOff(
  parts: Pick<MachineParts, 'instance' | 'settings'>,
  machine: Machine | undefined,
  signal: AbortSignal,
  log: (line: string) => void,
): Promise<void> {
  const { instance, settings } = parts;
  const language = SCRIPT_LANGUAGES[settings.shell];
  const script = settings.sysprep ? language.sysprep : language.powerOff; // sysprep itself powers off
  if (script === undefined || machine === undefined || machine.isClosed) {
    if (settings.sysprep && (await instance.state({ signal })) !== 'stopped') {
      throw new ImageError('instance-failed', 'the connection was lost before sysprep began');
    }
    await pressPowerButton(parts, signal);
    return;
  }
  const title = settings.sysprep ? 'sysprep' : 'the power-off';
  const ended = new AbortController();
  const running = machine.run(title, 'power-off', script, {
    asAdministrator: true,
    signal: AbortSignal.any([signal, ended.signal]),
  });
  const failed = Promise.withResolvers<never>();
  running.catch((error: unknown) => {
    // Any other error is the end of the connection, which the end of the machine causes.
    if (error instanceof ImageError && error.code === 'command-failed') failed.reject(error);
  });
  try {
    await unlessLate(parts, signal, (waiting) =>
      Promise.race([instance.waitStopped({ signal: waiting }), failed.promise]),
    );
  } catch (error) {
    if (signal.aborted || settings.sysprep || !(error instanceof ImageError)) throw error;
    log(`${error.message}; pressing the power button`);
    await pressPowerButton(parts, signal);
  } finally {
    ended.abort();
    machine.close();
  }
}

async function pressPowerButton(
  parts: Pick<MachineParts, 'instance' | 'settings'>,
  signal: AbortSignal,
): Promise<void> {
  await unlessLate(parts, signal, (stopping) => parts.instance.stop({ signal: stopping }));
}

async function unlessLate(
  { instance, settings }: Pick<MachineParts, 'instance' | 'settings'>,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const { 'stop-timeout': stopTimeout } = settings;
  await withTimeout(stopTimeout, signal, work, (cause) => {
    const message = `instance ${instance.id} did not power off within ${stopTimeout} s`;
    return new ImageError('instance-failed', message, { cause });
  });
}
