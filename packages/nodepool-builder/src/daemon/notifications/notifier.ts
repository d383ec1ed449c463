import type { Logger } from '@nodepool-builder/image-builder';
import { RetryBudget, RetryPolicy } from '@nodepool-builder/image-builder/module-kit';
import { EVENTS, type EventKind } from '../../configuration/event-kinds.ts';
import type { NotificationSettings } from '../../configuration/notification.ts';
import { DeliveryError, deliver } from './delivery.ts';
import { type EventFacts, makeEvent, type NotificationEvent } from './event.ts';

/** Settings of a {@link Notifier}. */
export interface NotifierOptions {
  readonly logger: Logger;
  /** Attempts and pauses of a delivery; for tests. */
  readonly retries?: RetryPolicy;
}

/** Pauses between deliveries. `retry-timeout` limits their number. */
const RETRIES = { attempts: 1000, firstDelay: 5, longestDelay: 600, longestRetryAfter: 600 };

/** Maximum number of events that wait for one receiver. */
const LONGEST_QUEUE = 1000;

/** Time for waiting deliveries when the process stops, in milliseconds. */
const STOP_TIME = 5000;

/** Default of `events`: all events that may need action, and recoveries. */
const DEFAULT_EVENTS: readonly EventKind[] = EVENTS.filter((kind) => !kind.endsWith('-succeeded'));

/** Sends events to webhooks and commands. A receiver delays neither other receivers nor the caller. */
export class Notifier implements AsyncDisposable {
  readonly #options: NotifierOptions;
  #receivers: readonly Receiver[] = [];

  constructor(options: NotifierOptions) {
    this.#options = options;
  }

  /** Replaces the receivers. A receiver whose entry is unchanged keeps its waiting events. */
  configure(entries: readonly NotificationSettings[]): void {
    const before = this.#receivers;
    this.#receivers = entries.map((entry) => {
      const known = before.find(({ key }) => key === JSON.stringify(entry));
      return known ?? new Receiver(entry, this.#options);
    });
    // Waiting events of a changed receiver are still delivered to its old address.
    for (const receiver of before.filter((one) => !this.#receivers.includes(one))) void receiver.close();
  }

  /** Queues an event for each receiver that wants it. Returns at once. */
  notify(facts: EventFacts): void {
    const event = makeEvent(facts);
    for (const receiver of this.#receivers) {
      if (wants(receiver.entry, event)) receiver.add(event);
    }
  }

  /**
   * Queues an event for each image that is older than a receiver's `max-age`, once per image. @param images the newest
   * image of each name in each provider
   */
  notifyOfAges(images: Iterable<EventFacts & { readonly age: number }>): void {
    for (const facts of images) {
      const event = makeEvent(facts);
      for (const receiver of this.#receivers) {
        if (facts.age >= receiver.entry['max-age'] && wants(receiver.entry, event)) receiver.addOnce(event);
      }
    }
  }

  /** Delivers waiting events for at most five seconds. */
  async close(): Promise<void> {
    await Promise.all(this.#receivers.map((receiver) => receiver.close()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** Returns whether a receiver wants an event. A recovery is also a success. */
export function wants(
  { events = DEFAULT_EVENTS, diskimages, providers }: NotificationSettings,
  { event, diskimage, provider }: NotificationEvent,
): boolean {
  const success = event.replace('-recovered', '-succeeded') as EventKind;
  if (!events.includes(event) && !events.includes(success)) return false;
  if (diskimages !== undefined && !diskimages.includes(diskimage ?? '')) return false;
  return providers === undefined || provider === null || providers.includes(provider);
}

interface Waiting {
  readonly event: NotificationEvent;
  /** Start time on the monotonic clock, in milliseconds. */
  readonly since: number;
}

/** One receiver with its queue. Events keep their order. */
class Receiver {
  readonly entry: NotificationSettings;
  readonly key: string;
  readonly #options: NotifierOptions;
  readonly #retries: RetryPolicy;
  readonly #queue: Waiting[] = [];
  /** Ends pauses, so that each waiting event is sent once more. */
  readonly #closing = new AbortController();
  /** Ends deliveries. */
  readonly #closed = new AbortController();
  #draining: Promise<void> | undefined;
  #dropped = 0;
  /** Ids of the newest images that are too old, by provider and image name. */
  readonly #old = new Map<string, string>();

  constructor(entry: NotificationSettings, options: NotifierOptions) {
    this.entry = entry;
    this.key = JSON.stringify(entry);
    this.#options = options;
    this.#retries = options.retries ?? new RetryPolicy(RETRIES);
  }

  add(event: NotificationEvent): void {
    if (this.#closing.signal.aborted) return;
    this.#queue.push({ event, since: performance.now() });
    if (this.#queue.length > LONGEST_QUEUE) {
      this.#queue.shift();
      this.#dropped += 1;
      if (this.#dropped === 1) {
        this.#options.logger.warn(
          `notification ${this.entry.name}: ${LONGEST_QUEUE} events wait; older ones are dropped`,
        );
      }
    }
    this.#draining ??= this.#drain();
  }

  /** Adds an event of an image name in a provider, unless its last one was the same. */
  addOnce(event: NotificationEvent): void {
    const place = JSON.stringify([event.provider, event['image-name']]);
    if (this.#old.get(place) === event.id) return;
    this.#old.set(place, event.id);
    this.add(event);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    const timer = setTimeout(() => this.#closed.abort(), STOP_TIME);
    await this.#draining;
    clearTimeout(timer);
  }

  async #drain(): Promise<void> {
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift())
      await this.#send(next);
    this.#dropped = 0;
    this.#draining = undefined;
  }

  async #send({ event, since }: Waiting): Promise<void> {
    const { logger } = this.#options;
    const { entry } = this;
    const subject = `notification ${entry.name}: ${event.event} of ${event['image-id']}`;
    const left = entry['retry-timeout'] - (performance.now() - since) / 1000;
    // Each receiver has its own time, independent of the time limit of the work that notifies it.
    const budget = new RetryBudget(Math.max(0, left));
    const deliverOnce = (): Promise<string> => deliver(entry, event, this.#closed.signal);
    try {
      const delivery = budget.run(() =>
        this.#retries.run(deliverOnce, {
          signal: this.#closing.signal,
          onRetry: (error, pause, attempt) => {
            const again = `retrying in ${Math.ceil(pause)} s`;
            const message = `${subject} was not delivered (attempt ${attempt}): ${error.message}; ${again}`;
            if (attempt === 1) logger.warn(message);
            else logger.debug(message);
          },
        }),
      );
      const answer = await delivery.catch((error: unknown) => {
        if (error instanceof DeliveryError || this.#closed.signal.aborted) throw error;
        return deliverOnce(); // close() has ended the pause
      });
      logger.info(`${subject} was delivered: ${answer}`);
    } catch (error) {
      const reason = this.#closed.signal.aborted ? 'the process is stopping' : (error as Error).message;
      logger.error(`${subject} was not delivered: ${reason}`);
    }
  }
}
