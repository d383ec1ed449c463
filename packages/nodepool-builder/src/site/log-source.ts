import { setTimeout as delay } from 'node:timers/promises';
import { SingleFlight } from '@nodepool-builder/image-builder/internal';
import type { LogChunk } from '../protocol/log-part.ts';

/** Reads a log from an offset. If nothing follows, it waits for a few seconds. */
export type ReadLog = (offset: number, signal: AbortSignal) => Promise<LogChunk>;

/** Whole lines of a log. The last part may end within a line, and so may a part of a very long line. */
export interface LogPart extends LogChunk {
  /** Returns the result of `make` for this part. All followers of the log share it. */
  rendered(make: (part: LogPart) => Buffer): Buffer;
}

/** Line for a reader of a log that was truncated because it reached its limit. */
export const SHORTENED_NOTE = '# the log reached its limit: lines are repeated or missing here';

/** Bytes of a log that are buffered for its readers. */
const KEPT = 4 * 1024 * 1024;

/** Maximum length of a line without an end, in bytes. A longer one becomes a part of its own. */
const MAX_LINE_LENGTH = 65_536;

/** Minimum pause between two reads, in milliseconds, because the builder has other work to do. */
const REST = 100;

/**
 * One log, read once for all its followers, for whom its newest parts are buffered. For a follower who is behind, the
 * log is read again, as fast as the browser accepts it, until it has caught up. The builder gets at most ten queries
 * per second, regardless of the number of followers.
 */
export class LogSource {
  readonly #read: ReadLog;
  readonly #rest: number;
  /** Newest last. */
  #kept: LogPart[] = [];
  /** Stops reading once no follower waits. */
  readonly #loading = new SingleFlight<LogPart>();
  #lastRead: Promise<unknown> = Promise.resolve();

  constructor(read: ReadLog, rest: number) {
    this.#read = read;
    this.#rest = rest;
  }

  /**
   * Returns the lines that follow an offset, at once or when there are some.
   *
   * @throws the signal's reason; errors of the builder
   */
  async read(offset: number, signal: AbortSignal): Promise<LogPart> {
    signal.throwIfAborted();
    const found = this.#kept.find((part) => part.offset === offset);
    if (found !== undefined) return found;
    return await this.#loading.run(String(offset), (shared) => this.#load(offset, shared.signal), { signal });
  }

  async #load(offset: number, signal: AbortSignal): Promise<LogPart> {
    let begin = offset;
    let rest: Buffer = Buffer.alloc(0);
    for (;;) {
      const chunk = await this.#readInTurn(begin + rest.length, signal);
      if (chunk.offset !== begin + rest.length) {
        this.#kept = []; // the log was truncated, so earlier offsets are no longer valid
        [begin, rest] = [chunk.offset, Buffer.alloc(0)];
      }
      const all = rest.length === 0 ? chunk.data : Buffer.concat([rest, chunk.data]);
      const lines = all.lastIndexOf(10) + 1;
      const isWhole = chunk.isComplete || (lines === 0 && all.length > MAX_LINE_LENGTH);
      const end = isWhole ? all.length : lines;
      if (end > 0 || chunk.isComplete) return this.#keep(begin, all.subarray(0, end), chunk.isComplete);
      rest = all;
    }
  }

  /** Reads after earlier reads and a pause. While the builder waits for more lines, others may read. */
  async #readInTurn(offset: number, signal: AbortSignal): Promise<LogChunk> {
    const turn = this.#lastRead.then(() => delay(this.#rest, undefined, { signal }));
    this.#lastRead = turn.catch(() => {});
    if (this.#kept.length > 0) await turn;
    signal.throwIfAborted();
    return await this.#read(offset, signal);
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

/** The logs that have readers. */
export class LogSources {
  readonly #rest: number;
  readonly #sources = new Map<string, { readonly source: LogSource; readers: number }>();

  /** @param rest minimum pause between two reads of a log, in milliseconds */
  constructor(rest = REST) {
    this.#rest = rest;
  }

  /** Shares the source of a log among its current users. */
  async use<T>(key: string, read: ReadLog, work: (source: LogSource) => Promise<T>): Promise<T> {
    const entry = this.#sources.get(key) ?? { source: new LogSource(read, this.#rest), readers: 0 };
    this.#sources.set(key, entry);
    entry.readers += 1;
    try {
      return await work(entry.source);
    } finally {
      entry.readers -= 1;
      if (entry.readers === 0) this.#sources.delete(key);
    }
  }
}
