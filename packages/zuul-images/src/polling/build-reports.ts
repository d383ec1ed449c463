import type { Logger } from '@nodepool-builder/image-builder';
import type { MqttSettings } from '../zuul-settings.ts';
import { MqttListener } from './mqtt-listener.ts';

/** Poller that waits for builds of a job. */
export interface Subscriber {
  readonly job: string;
  /** Called when a build of the job has finished, or may have finished: reports sent before the subscription are lost. */
  readonly wake: () => void;
}

/** A subscription. After {@link close} the subscriber is not called again. */
export interface Subscription {
  close(): Promise<void>;
}

/** A connection and its subscribers. */
interface Shared {
  readonly listener: MqttListener;
  readonly subscribers: Set<Subscriber>;
}

/** Reports of Zuul's MQTT reporter. Subscriptions with the same settings share a connection. */
export class BuildReports {
  readonly #logger: Logger;
  readonly #shared = new Map<string, Shared>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  subscribe(settings: MqttSettings, subscriber: Subscriber): Subscription {
    const key = JSON.stringify(settings, Object.keys(settings).toSorted());
    const shared = this.#shared.get(key) ?? this.#listen(settings);
    this.#shared.set(key, shared);
    shared.subscribers.add(subscriber);
    return {
      close: async () => {
        shared.subscribers.delete(subscriber);
        if (shared.subscribers.size > 0 || this.#shared.get(key) !== shared) return;
        this.#shared.delete(key);
        await shared.listener.close();
      },
    };
  }

  #listen(settings: MqttSettings): Shared {
    const subscribers = new Set<Subscriber>();
    const listener = new MqttListener({
      settings,
      onSubscribed: () => {
        for (const { wake } of subscribers) wake();
      },
      onMessage: (payload) => this.#report(payload, subscribers),
      logger: this.#logger,
    });
    return { listener, subscribers };
  }

  #report(payload: Uint8Array, subscribers: Iterable<Subscriber>): void {
    try {
      const jobs = finishedJobs(payload);
      for (const { job, wake } of subscribers) if (jobs.has(job)) wake();
    } catch (error) {
      this.#logger.debug(`ignored an MQTT message that is not a report of Zuul: ${(error as Error).message}`);
    }
  }
}

/**
 * Jobs with a finished build in a message of Zuul's MQTT reporter, whatever the result: for a job with a
 * `success-message` the reporter sends that text as the result of its successful builds.
 * https://zuul-ci.org/docs/zuul/latest/drivers/mqtt.html
 *
 * @throws Error with the reason, if the payload is not such a message
 */
export function finishedJobs(payload: Uint8Array): ReadonlySet<string> {
  const message: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(payload));
  const builds = property(property(message, 'buildset'), 'builds');
  if (!Array.isArray(builds)) throw new Error('buildset.builds is not a list');
  const jobs = builds
    .filter((build: unknown) => typeof property(build, 'result') === 'string')
    .map((build: unknown) => property(build, 'job_name'));
  return new Set(jobs.filter((job) => typeof job === 'string'));
}

function property(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
