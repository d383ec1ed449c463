import { GearmanError } from '../errors.ts';

/** What a worker sends while a job runs. */
export type JobEvent =
  | { readonly type: 'status'; readonly numerator: number; readonly denominator: number }
  | { readonly type: 'data'; readonly data: Buffer }
  | { readonly type: 'warning'; readonly data: Buffer };

/** So many bytes of events are kept for one job. */
const LIMIT = 1024 * 1024;

/** What an event costs beside its data. */
const OVERHEAD = 64;

/** How the one who reads events holds up the one who sends them. */
export interface FlowControl {
  /** Events come faster than they are read. */
  readonly hold: () => void;
  /** They may come again. */
  readonly release: () => void;
}

/**
 * The events of one job on their way to a `for await` loop. While one runs and lags behind, the server is held up;
 * as long as none has begun, events are kept up to a limit and then dropped. Several loops share the events.
 */
export class JobEvents implements AsyncIterableIterator<JobEvent> {
  readonly #flow: FlowControl;
  #events: JobEvent[] = [];
  #size = 0;
  #isRead = false;
  #isDropped = false;
  #isHeld = false;
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
    this.#size += sizeOf(event);
    if (this.#size > LIMIT) this.#overflow();
    this.#wakeAll();
  }

  /** The job is over; with an error, that is what the loop throws after the last event. */
  end(error?: GearmanError): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#error = error;
    this.#release();
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
        `over ${LIMIT} bytes of events came before they were asked for; read them from the start`,
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

  /** The loop was left: nothing is kept any more. */
  async return(): Promise<IteratorResult<JobEvent, undefined>> {
    this.#events = [];
    this.end();
    return { done: true, value: undefined };
  }

  #wakeAll(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  #taken(event: JobEvent): IteratorResult<JobEvent, undefined> {
    this.#size -= sizeOf(event);
    if (this.#size < LIMIT / 2) this.#release();
    return { done: false, value: event };
  }

  #overflow(): void {
    if (this.#isRead && !this.#isHeld) {
      this.#isHeld = true;
      this.#flow.hold();
    } else if (!this.#isRead) {
      this.#isDropped = true;
      this.#events = [];
    }
  }

  #release(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#flow.release();
  }
}

function sizeOf(event: JobEvent): number {
  return OVERHEAD + (event.type === 'status' ? 0 : event.data.length);
}
