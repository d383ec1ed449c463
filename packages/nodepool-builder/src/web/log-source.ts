/** A part of a log. */
export interface LogChunk {
  readonly data: Buffer;
  /** Offset of its first byte. */
  readonly offset: number;
  /** True if nothing follows it. */
  readonly isComplete: boolean;
}

/** Reads a log from an offset on, and waits until there is something, or for some seconds. */
export type ReadLog = (offset: number, signal: AbortSignal) => Promise<LogChunk>;

/** Bytes of a log that are kept for its readers. */
const KEPT = 1024 * 1024;

/**
 * One log, read once for all who follow it: its newest bytes are kept for them. A reader who is behind reads from the
 * builder, as fast as its browser takes it, until it has caught up.
 */
export class LogSource {
  readonly #read: ReadLog;
  readonly #closed = new AbortController();
  /** Consecutive chunks, the newest last. */
  #kept: LogChunk[] = [];
  #size = 0;
  #reading: Promise<void> | undefined;

  constructor(read: ReadLog) {
    this.#read = read;
  }

  /**
   * Returns what follows an offset: at once, or when there is something.
   *
   * @throws the signal's reason; errors of the builder
   */
  async read(offset: number, signal: AbortSignal): Promise<LogChunk> {
    for (;;) {
      signal.throwIfAborted();
      this.#closed.signal.throwIfAborted();
      const found = this.#find(offset);
      if (found !== undefined) return found;
      const last = this.#kept.at(-1);
      if (last !== undefined && endOf(last) !== offset) return await this.#read(offset, signal);
      this.#reading ??= this.#readNext(offset).finally(() => {
        this.#reading = undefined;
      });
      await untilAborted(this.#reading, signal);
    }
  }

  /** Ends the wait for the builder. */
  close(): void {
    this.#closed.abort(new Error('the log is no longer followed'));
  }

  #find(offset: number): LogChunk | undefined {
    const chunk = this.#kept.find((one) => one.offset <= offset && offset < endOf(one));
    if (chunk !== undefined) {
      return { data: chunk.data.subarray(offset - chunk.offset), offset, isComplete: chunk.isComplete };
    }
    const last = this.#kept.at(-1);
    const isEnd = last?.isComplete === true && offset >= endOf(last);
    return isEnd ? { data: Buffer.alloc(0), offset, isComplete: true } : undefined;
  }

  async #readNext(offset: number): Promise<void> {
    const chunk = await this.#read(offset, this.#closed.signal);
    if (chunk.data.length === 0 && !chunk.isComplete) return;
    this.#kept.push(chunk);
    this.#size += chunk.data.length;
    while (this.#size > KEPT && this.#kept.length > 1) this.#size -= this.#kept.shift()?.data.length ?? 0;
  }
}

function endOf({ offset, data }: LogChunk): number {
  return offset + data.length;
}

/** Waits for a promise that others wait for, too. */
async function untilAborted(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = (): void => reject(signal.reason as Error);
  signal.addEventListener('abort', abort, { once: true });
  try {
    await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** The logs that somebody reads now. */
export class LogSources {
  readonly #sources = new Map<string, { readonly source: LogSource; readers: number }>();

  /** Shares the source of a log as long as somebody uses it. */
  async use<T>(key: string, read: ReadLog, work: (source: LogSource) => Promise<T>): Promise<T> {
    const entry = this.#sources.get(key) ?? { source: new LogSource(read), readers: 0 };
    this.#sources.set(key, entry);
    entry.readers += 1;
    try {
      return await work(entry.source);
    } finally {
      entry.readers -= 1;
      if (entry.readers === 0) {
        this.#sources.delete(key);
        entry.source.close();
      }
    }
  }
}
