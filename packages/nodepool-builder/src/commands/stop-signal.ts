import { CommandError } from '../terms/command-error.ts';

const STOP_SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/** Listens for SIGTERM and SIGINT. */
export function stopSignal() {
  const { promise: requested, resolve } = Promise.withResolvers<NodeJS.Signals>();
  const stop = new AbortController();
  const urgent: AbortSignal = stop.signal;
  let first = true;
  const take = (signal: NodeJS.Signals): void => {
    if (first) resolve(signal);
    else stop.abort(new Error(`the process received ${signal} again`));
    first = false;
  };
  for (const signal of STOP_SIGNALS) process.on(signal, take);
  return {
    /** Resolves with the first SIGTERM or SIGINT. */
    requested,
    /** Aborts with the second signal: running jobs have to stop. */
    urgent,
    /** Stops listening. */
    close: (): void => {
      for (const signal of STOP_SIGNALS) process.off(signal, take);
    },
  };
}

/**
 * Runs a task whose signal aborts at SIGTERM or SIGINT. A second signal ends the process.
 *
 * @param onInterrupt handles a SIGINT; returns false if the signal should abort as usual
 * @throws CommandError that names the signal
 */
export async function untilStopSignal<T>(
  task: (signal: AbortSignal) => Promise<T>,
  onInterrupt: () => boolean = () => false,
): Promise<T> {
  const stop = new AbortController();
  const release = (): void => {
    for (const signal of STOP_SIGNALS) process.off(signal, onSignal);
  };
  const onSignal = (signal: NodeJS.Signals): void => {
    if (signal === 'SIGINT' && onInterrupt()) return;
    release();
    stop.abort(new CommandError(`stopped by ${signal}`, 'cancelled'));
  };
  for (const signal of STOP_SIGNALS) process.on(signal, onSignal);
  try {
    return await task(stop.signal);
  } catch (error) {
    stop.signal.throwIfAborted(); // names the signal, instead of an error that the abort caused
    throw error;
  } finally {
    release();
  }
}
