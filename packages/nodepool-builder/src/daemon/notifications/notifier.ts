import type { Logger } from '@nodepool-builder/image-builder';
import { Mutex, type Retry, RetryBudget, retryText } from '@nodepool-builder/image-builder/internal';
import { RetryPolicy } from '@nodepool-builder/image-builder/plugin';
import { EVENTS, type EventKind, type NotificationSettings } from '../../configuration/notification.ts';
import { DeliveryError, deliver } from './delivery.ts';
import { type EventFacts, makeEvent, type NotificationEvent } from './event.ts';

/** Settings of a {@link Notifier}. */
export interface NotifierOptions {
  readonly logger: Logger;
  /** Attempts and pauses of a delivery; for tests. */
  readonly retries?: RetryPolicy;
  /** Max seconds of an attempt; for tests. */
  readonly timeout?: number;
}

/** Attempts of a delivery: they take about an hour. */
const RETRIES = { attempts: 13, firstDelay: 5, maxDelay: 600, maxRetryAfter: 600 };

/** Seconds in which an attempt may begin. */
const MAX_RETRY_TIME = 3600;

/** Max events that wait for one receiver. */
const MAX_QUEUE = 1000;

/** Time for waiting deliveries when the process stops, in milliseconds. */
const STOP_TIME = 5000;

/** Default of `events`: all events that may need action, and recoveries. */
const DEFAULT_EVENTS: readonly EventKind[] = EVENTS.filter((kind) => !kind.endsWith('-succeeded'));

/** Sends events to webhooks and commands. A receiver delays neither other receivers nor the caller. */
export class Notifier {
  readonly #options: NotifierOptions;
  #receivers: readonly Receiver[] = [];

  constructor(options: NotifierOptions) {
    this.#options = options;
  }

  /** Replaces the receivers. A receiver whose entry is unchanged keeps its waiting events. */
  configure(entries: readonly NotificationSettings[]): void {
    const before = this.#receivers;
    this.#receivers = entries.map((entry) => {
      const known = before.find((one) => JSON.stringify(one.entry) === JSON.stringify(entry));
      return known ?? new Receiver(entry, this.#options);
    });
    // Waiting events of a changed receiver are still delivered to its old address.
    for (const receiver of before.filter((one) => !this.#receivers.includes(one))) void receiver.close();
  }

  /**
   * Hands an event to each receiver that wants it. Returns at once. An image is too old for a receiver from its
   * `max-age` on, and once only.
   */
  notify(facts: EventFacts): void {
    const event = makeEvent(facts);
    // A recovery is also a success.
    const success = event.event.replace('-recovered', '-succeeded') as EventKind;
    for (const receiver of this.#receivers) {
      const { events = DEFAULT_EVENTS, 'max-age': maxAge } = receiver.entry;
      if (!events.includes(event.event) && !events.includes(success)) continue;
      if (event.age === null || event.age >= maxAge) receiver.add(event);
    }
  }

  /** Delivers waiting events for at most five seconds. */
  async close(): Promise<void> {
    await Promise.all(this.#receivers.map((receiver) => receiver.close()));
  }
}

/** One receiver with its queue. Events keep their order. */
class Receiver {
  readonly entry: NotificationSettings;
  readonly #options: NotifierOptions;
  /** Ends pauses, so that each waiting event is sent once more. */
  readonly #closing = new AbortController();
  /** Ends deliveries. */
  readonly #closed = new AbortController();
  readonly #deliveries = new Mutex();
  #waiting = 0;
  /** Ids of the newest images that are too old, by provider and image name. */
  readonly #old = new Map<string, string>();

  constructor(entry: NotificationSettings, options: NotifierOptions) {
    this.entry = entry;
    this.#options = options;
  }

  add(event: NotificationEvent): void {
    if (this.#closing.signal.aborted) return;
    if (event.age !== null) {
      const place = JSON.stringify([event.provider, event['image-name']]);
      if (this.#old.get(place) === event.id) return;
      this.#old.set(place, event.id);
    }
    if (this.#waiting >= MAX_QUEUE) {
      this.#options.logger.error(`${this.#subject(event)} was not delivered: ${MAX_QUEUE} events wait`);
      return;
    }
    this.#waiting += 1;
    void this.#deliveries.run(async () => {
      // Each receiver has its own time, independent of the time limit of the work that notifies it.
      await new RetryBudget(MAX_RETRY_TIME).run(() => this.#send(event));
      this.#waiting -= 1;
    });
  }

  async close(): Promise<void> {
    this.#closing.abort();
    const timer = setTimeout(() => this.#closed.abort(), STOP_TIME);
    await this.#deliveries.idle();
    clearTimeout(timer);
  }

  #subject(event: NotificationEvent): string {
    return `notification ${this.entry.name}: ${event.event} of ${event['image-id']}`;
  }

  async #send(event: NotificationEvent): Promise<void> {
    const { logger, retries = new RetryPolicy(RETRIES), timeout } = this.#options;
    const subject = this.#subject(event);
    const deliverOnce = (): Promise<string> => deliver(this.entry, event, this.#closed.signal, timeout);
    const onRetry = (retry: Retry): void => {
      const message = `${subject} was not delivered: ${retry.error.message}; ${retryText(retry)}`;
      if (retry.attempt === 2) logger.warn(message);
      else logger.debug(message);
    };
    try {
      const delivery = retries.run(deliverOnce, { signal: this.#closing.signal, onRetry });
      const response = await delivery.catch((error: unknown) => {
        if (error instanceof DeliveryError || this.#closed.signal.aborted) throw error;
        return deliverOnce(); // close() has ended the pause
      });
      logger.info(`${subject} was delivered: ${response}`);
    } catch (error) {
      const reason = this.#closed.signal.aborted ? 'the process is stopping' : (error as Error).message;
      logger.error(`${subject} was not delivered: ${reason}`);
    }
  }
}
