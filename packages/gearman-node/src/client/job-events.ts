import { GearmanError } from '../errors.ts';

/** A packet that a worker sends while a job runs. */
export type JobEvent =
  | { readonly type: 'status'; readonly numerator: number; readonly denominator: number }
  | { readonly type: 'data'; readonly data: Buffer }
  | { readonly type: 'warning'; readonly data: Buffer };

/** Maximum size of the unread events of one job, in bytes. */
const LIMIT = 1024 * 1024;

/** Overhead of an event in bytes. */
const OVERHEAD = 64;

/** Back-pressure from the reader of events to the connection. */
export interface FlowControl {
  readonly pause: () => void;
  readonly resume: () => void;
}

/**
 * The events of one job, read by `for await` loops, which share them. Slow loops pause the connection. Before the first
 * loop starts, events are kept up to a limit; above it, all are dropped.
 */
export class JobEvents implements AsyncIterableIterator<JobEvent> {
  readonly #flow: FlowControl;
  #events: JobEvent[] = [];
  #size = 0;
  #isRead = false;
  #isDropped = false;
  #isPaused = false;
  #isOver = false;
  #error: GearmanError | undefined;
  /** Wakes waiting readers in order of arrival. */
  #waiting: (() => void)[] = [];

  constructor(flow: FlowControl) {
    this.#flow = flow;
  }

  push(event: JobEvent): void {
    if (this.#isOver || this.#isDropped) return;
    this.#events.push(event);
    this.#size += eventSize(event);
    if (this.#size > LIMIT) this.#overflow();
    this.#wakeAll();
  }

  /** Ends the events. After the last event, loops throw the error if one is given. */
  end(error?: GearmanError): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#error = error;
    this.#resume();
    this.#wakeAll();
  }

  [Symbol.asyncIterator](): this {
    this.#isRead = true;
    return this;
  }

  async next(): Promise<IteratorResult<JobEvent, undefined>> {
    if (this.#isDropped) {
      throw new GearmanError(
        'events-dropped',
        `over ${LIMIT} bytes of events arrived before the first loop; start the loop right after submit()`,
      );
    }
    for (;;) {
      const event = this.#events.shift();
      if (event) return this.#taken(event);
      if (this.#error) throw this.#error;
      if (this.#isOver) return { done: true, value: undefined };
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  /** Drops all events when a loop is left early. */
  async return(): Promise<IteratorResult<JobEvent, undefined>> {
    this.#events = [];
    this.end();
    return { done: true, value: undefined };
  }

  #wakeAll(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  #taken(event: JobEvent): IteratorResult<JobEvent, undefined> {
    this.#size -= eventSize(event);
    if (this.#size < LIMIT / 2) this.#resume();
    return { done: false, value: event };
  }

  #overflow(): void {
    if (this.#isRead && !this.#isPaused) {
      this.#isPaused = true;
      this.#flow.pause();
    } else if (!this.#isRead) {
      this.#isDropped = true;
      this.#events = [];
    }
  }

  #resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#flow.resume();
  }
}

function eventSize(event: JobEvent): number {
  return OVERHEAD + (event.type === 'status' ? 0 : event.data.length);
}
