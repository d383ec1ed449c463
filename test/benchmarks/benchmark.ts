/** One row of the table of results. */
export interface Measurement {
  readonly what: string;
  readonly result: string;
  /** Limit of the figure; absent for figures without a bar. */
  readonly bar?: { readonly limit: string; readonly met: boolean };
  /** Bar in the chart; absent if the row has none. */
  readonly figure?: Figure;
}

/** A bar of a chart. */
export interface Figure {
  /** Bars of one group share a scale. */
  readonly group: string;
  readonly label: string;
  readonly value: number;
  /** Ends of the line that shows the spread. */
  readonly min: number;
  readonly max: number;
}

/** Services for a benchmark. */
export interface BenchmarkContext {
  /** Aborts when the benchmark must stop. */
  readonly signal: AbortSignal;
  /** Registers `close` to be called at the end, also after a failure, in reverse order. */
  readonly after: (close: () => Promise<unknown>) => void;
  /** Prints a line of progress. */
  readonly progress: (line: string) => void;
}

/** One part of `npm run bench`. */
export interface Benchmark {
  /** Name on the command line. */
  readonly name: string;
  readonly run: (context: BenchmarkContext) => Promise<Measurement[]>;
}

/** Waits for work; rejects with the signal's reason when it aborts. */
export async function unlessAborted<T>(work: PromiseLike<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort);
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
