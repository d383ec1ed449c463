/** One row of the table of results. */
export interface Measurement {
  readonly what: string;
  readonly result: string;
  /** What the figure must not exceed, or fall below; absent where a figure is only told. */
  readonly bar?: { readonly limit: string; readonly met: boolean };
  /** What a chart shows of it; absent where it shows nothing. */
  readonly figure?: Figure;
}

/** A bar of a chart. */
export interface Figure {
  /** Bars of one group have one scale. */
  readonly group: string;
  readonly label: string;
  readonly value: number;
  /** The ends of the line that shows the spread. */
  readonly min: number;
  readonly max: number;
}

/** What a benchmark works with. */
export interface BenchmarkContext {
  /** Aborts when the benchmark has to stop; whatever it waits for then rejects. */
  readonly signal: AbortSignal;
  /** Has `close` called when the benchmark ends, however it ends; the last one added comes first. */
  readonly after: (close: () => Promise<unknown>) => void;
  /** Tells people what goes on. */
  readonly progress: (line: string) => void;
}

/** A part of `npm run bench`. */
export interface Benchmark {
  /** The name under which it is chosen. */
  readonly name: string;
  readonly run: (context: BenchmarkContext) => Promise<Measurement[]>;
}

/** Waits for work; rejects with the signal's reason as soon as it aborts. */
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
