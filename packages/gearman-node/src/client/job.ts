/** What a worker sends while a job runs. */
export type JobEvent =
  | { readonly type: 'status'; readonly numerator: number; readonly denominator: number }
  | { readonly type: 'data'; readonly data: Buffer }
  | { readonly type: 'warning'; readonly data: Buffer };

/** A job that was submitted: awaitable for its result, async-iterable for its progress. */
export abstract class Job implements PromiseLike<Buffer>, AsyncIterable<JobEvent> {
  abstract readonly function: string;
  /** The server's name for the job, once it has accepted it. */
  abstract readonly handle: Promise<string>;
  /** The payload of WORK_COMPLETE. */
  abstract readonly result: Promise<Buffer>;

  // biome-ignore lint/suspicious/noThenProperty: a job is awaitable by design
  abstract then<T = Buffer, E = never>(
    onfulfilled?: ((value: Buffer) => T | PromiseLike<T>) | null,
    onrejected?: ((reason: unknown) => E | PromiseLike<E>) | null,
  ): Promise<T | E>;
  abstract [Symbol.asyncIterator](): AsyncIterator<JobEvent>;
}
