/** The wish of whoever started this process that it ends. */
export interface StopSignal {
  /** Resolves with the first SIGTERM or SIGINT. */
  readonly requested: Promise<NodeJS.Signals>;
  /** Aborts with the second one: what still runs has to stop. */
  readonly urgent: AbortSignal;
  /** Gives the signals back. */
  close(): void;
}

const STOP_SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/** Takes SIGTERM and SIGINT over. */
export function stopSignal(): StopSignal {
  const { promise: requested, resolve } = Promise.withResolvers<NodeJS.Signals>();
  const urgent = new AbortController();
  let first = true;
  const take = (signal: NodeJS.Signals): void => {
    if (first) resolve(signal);
    else urgent.abort(new Error(`${signal} came a second time`));
    first = false;
  };
  for (const signal of STOP_SIGNALS) process.on(signal, take);
  return {
    requested,
    urgent: urgent.signal,
    close: () => {
      for (const signal of STOP_SIGNALS) process.off(signal, take);
    },
  };
}
