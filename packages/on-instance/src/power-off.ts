import { ImageError, type Instance } from '@nodepool-builder/image-builder';
import { withTimeout } from '@nodepool-builder/image-builder/module-kit';
import type { Machine } from './machine.ts';
import { runScript, type StepSite } from './run-steps.ts';
import type { OnInstance } from './settings.ts';

/** What generalises a system powers it off as well; nothing else may then. */
const SYSPREP = 'sysprep';

/** What is powered off. */
export interface PowerOffSite extends Omit<StepSite, 'machine' | 'record'> {
  readonly instance: Instance;
  /** Absent if nobody has logged in since a crash. */
  readonly machine: Machine | undefined;
}

/**
 * Has the system power itself off, after sysprep where that is wanted, and waits until it has. Where it does not, or
 * where nobody is logged in any more, it is asked to by the power button.
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
    () => new Promise<never>(() => {}), // what it has begun is waited for
    (error: unknown) => {
      if (error instanceof ImageError && error.code === 'command-failed') throw error;
      return new Promise<never>(() => {}); // the connection ends with the machine
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

/** Powers off a system that nobody is logged in to. */
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
