import type { Logger } from '@nodepool-builder/image-builder';
import type { MqttSettings } from '@nodepool-builder/zuul-images';
import { finishedJobs } from './finished-jobs.ts';
import { MqttListener } from './mqtt-listener.ts';

/** Who wants to know of the builds of a job. */
export interface Subscriber {
  readonly job: string;
  /** Called when a build of the job has finished, or may have: reports sent before the connection stood are lost. */
  readonly wake: () => void;
}

/** Ends with {@link close}; no call comes after that. */
export interface Subscription {
  close(): Promise<void>;
}

/** A connection, and all who listen on it. */
interface Shared {
  readonly listener: MqttListener;
  readonly subscribers: Set<Subscriber>;
}

/** What Zuul's MQTT reporter tells of builds. Who gives the same settings shares a connection. */
export class BuildReports {
  readonly #logger: Logger;
  readonly #shared = new Map<string, Shared>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  subscribe(settings: MqttSettings, subscriber: Subscriber): Subscription {
    const { url, topic, username, passwordFile, caFile } = settings;
    const key = JSON.stringify([url, topic, username, passwordFile, caFile]);
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
      this.#logger.debug(`a message over MQTT is no report of Zuul's: ${(error as Error).message}`);
    }
  }
}
