import { ImageError, type Instance } from '@nodepool-builder/image-builder';
import { withTimeout } from '@nodepool-builder/image-builder/module-kit';
import type { Machine } from './machine.ts';
import { runScript, type StepSite } from './run-steps.ts';
import type { OnInstance } from './settings.ts';

/** Sysprep powers the system off itself; nothing else may do so meanwhile. */
const SYSPREP = 'sysprep';

/** Machine to power off. */
export interface PowerOffSite extends Omit<StepSite, 'machine' | 'record'> {
  readonly instance: Instance;
  /** Absent without a login since a crash. */
  readonly machine: Machine | undefined;
}

/**
 * Powers the system off, after sysprep if configured, and waits until it is off. If that fails or there is no login,
 * the power button is pressed.
 *
 * @throws ImageError `instance-failed` if it stays on; `command-failed` if sysprep refuses
 */
export async function powerOff({
  instance,
  machine,
  language,
  settings,
  context,
}: PowerOffSite): Promise<void> {
  const { stopTimeout } = settings;
  const script = settings.sysprep ? language.sysprep : language.powerOff;
  if (script === undefined || machine === undefined || machine.isClosed) {
    await pushPowerButton(instance, settings, context.signal);
    return;
  }
  const title = settings.sysprep ? SYSPREP : 'the power-off';
  const over = new AbortController();
  const refused = runScript({ machine, context }, title, 'power-off', script, {
    signal: AbortSignal.any([context.signal, over.signal]),
  }).then(
    () => new Promise<never>(() => {}), // the end of the machine is awaited
    (error: unknown) => {
      if (error instanceof ImageError && error.code === 'command-failed') throw error;
      return new Promise<never>(() => {}); // the machine's end closes the connection
    },
  );
  try {
    const off = (signal: AbortSignal): Promise<void> =>
      Promise.race([instance.waitStopped({ signal }), refused]);
    await withTimeout(stopTimeout, context.signal, off, (cause) => {
      throw notOff(instance, stopTimeout, cause);
    });
  } catch (error) {
    if (context.signal.aborted || settings.sysprep || !(error instanceof ImageError)) throw error;
    context.log(`${error.message}; it is asked to by the power button`);
    await pushPowerButton(instance, settings, context.signal);
  } finally {
    over.abort();
    machine.close();
  }
}

/** Powers off a system without a login. */
async function pushPowerButton(
  instance: Instance,
  { stopTimeout, sysprep }: OnInstance,
  signal: AbortSignal,
): Promise<void> {
  if (sysprep && (await instance.state({ signal })) !== 'stopped') {
    throw new ImageError('instance-failed', `the connection was lost before ${SYSPREP} began`);
  }
  await withTimeout(
    stopTimeout,
    signal,
    (stopping) => instance.stop({ signal: stopping }),
    (cause) => {
      throw notOff(instance, stopTimeout, cause);
    },
  );
}

function notOff({ id }: Instance, seconds: number, cause: unknown): ImageError {
  return new ImageError('instance-failed', `instance ${id} did not power off within ${seconds} s`, { cause });
}
