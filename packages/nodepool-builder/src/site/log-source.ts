import { setTimeout as delay } from 'node:timers/promises';
import type { LogChunk } from '../protocol/log-part.ts';

/** Reads a log from an offset on, and waits until there is something, or for some seconds. */
export type ReadLog = (offset: number, signal: AbortSignal) => Promise<LogChunk>;

/** Whole lines of a log. The last part may end within a line, and so does one of a very long line. */
export interface LogPart extends LogChunk {
  /** Returns what `make` makes of the part. All who follow the log share it. */
  rendered(make: (part: LogPart) => Buffer): Buffer;
}

/** Line for a reader of a log that was shortened since, as it reached its limit. */
export const SHORTENED_NOTE = '# the log reached its limit: lines are repeated or left out here';

/** Bytes of a log that are kept for its readers. */
const KEPT = 4 * 1024 * 1024;

/** Bytes of a line without an end that are a part of their own. */
const LONGEST_LINE = 65_536;

/** Least time between two reads, in milliseconds: the builder has other work to do. */
const REST = 100;

/**
 * One log, read once for all who follow it: its newest parts are kept for them. A reader who is behind has it read again,
 * as fast as its browser takes it, until it has caught up. However many follow, the builder is asked ten times a second at most.
 */
export class LogSource {
  readonly #read: ReadLog;
  readonly #rest: number;
  readonly #closed = new AbortController();
  /** The newest last. */
  #kept: LogPart[] = [];
  readonly #loading = new Map<number, Promise<LogPart>>();
  #lastRead: Promise<unknown> = Promise.resolve();

  constructor(read: ReadLog, rest: number) {
    this.#read = read;
    this.#rest = rest;
  }

  /**
   * Returns the lines that follow an offset: at once, or when there are some.
   *
   * @throws the signal's reason; errors of the builder
   */
  async read(offset: number, signal: AbortSignal): Promise<LogPart> {
    signal.throwIfAborted();
    const found = this.#kept.find((part) => part.offset === offset);
    if (found !== undefined) return found;
    let loading = this.#loading.get(offset);
    if (loading === undefined) {
      loading = this.#load(offset).finally(() => this.#loading.delete(offset));
      this.#loading.set(offset, loading);
    }
    return await untilAborted(loading, signal);
  }

  /** Ends the wait for the builder. */
  close(): void {
    this.#closed.abort(new Error('the log is no longer followed'));
  }

  async #load(offset: number): Promise<LogPart> {
    let begin = offset;
    let rest: Buffer = Buffer.alloc(0);
    for (;;) {
      const chunk = await this.#readInTurn(begin + rest.length);
      if (chunk.offset !== begin + rest.length) {
        this.#kept = []; // the log was shortened: their offsets mean nothing any more
        [begin, rest] = [chunk.offset, Buffer.alloc(0)];
      }
      const all = rest.length === 0 ? chunk.data : Buffer.concat([rest, chunk.data]);
      const lines = all.lastIndexOf(10) + 1;
      const isWhole = chunk.isComplete || (lines === 0 && all.length > LONGEST_LINE);
      const end = isWhole ? all.length : lines;
      if (end > 0 || chunk.isComplete) return this.#keep(begin, all.subarray(0, end), chunk.isComplete);
      rest = all;
    }
  }

  /** Reads after the earlier reads, and after a rest. While the builder waits for more, others may read. */
  async #readInTurn(offset: number): Promise<LogChunk> {
    const turn = this.#lastRead.then(() => delay(this.#rest, undefined, { signal: this.#closed.signal }));
    this.#lastRead = turn.catch(() => {});
    if (this.#kept.length > 0) await turn;
    this.#closed.signal.throwIfAborted();
    return await this.#read(offset, this.#closed.signal);
  }

  #keep(offset: number, data: Buffer, isComplete: boolean): LogPart {
    const made = new Map<unknown, Buffer>();
    const part: LogPart = {
      offset,
      data,
      isComplete,
      rendered: (make) => {
        const known = made.get(make) ?? make(part);
        made.set(make, known);
        return known;
      },
    };
    this.#kept.push(part);
    let size = this.#kept.reduce((sum, one) => sum + one.data.length, 0);
    while (size > KEPT && this.#kept.length > 1) size -= this.#kept.shift()?.data.length ?? 0;
    return part;
  }
}

/** Waits for a promise that others wait for, too. */
async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = (): void => reject(signal.reason as Error);
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** The logs that somebody reads now. */
export class LogSources {
  readonly #rest: number;
  readonly #sources = new Map<string, { readonly source: LogSource; readers: number }>();

  /** @param rest least milliseconds between two reads of a log */
  constructor(rest = REST) {
    this.#rest = rest;
  }

  /** Shares the source of a log as long as somebody uses it. */
  async use<T>(key: string, read: ReadLog, work: (source: LogSource) => Promise<T>): Promise<T> {
    const entry = this.#sources.get(key) ?? { source: new LogSource(read, this.#rest), readers: 0 };
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
