import type { Logger } from '@nodepool-builder/image-builder';
import { objectOf } from '@nodepool-builder/image-builder/internal';
import { JsonReader } from '@nodepool-builder/image-builder/plugin';
import type { MqttSettings } from '../zuul-settings.ts';
import { listenToBroker, MAX_MESSAGE_SIZE } from './mqtt-listener.ts';

/** Schema of a report: https://zuul-ci.org/docs/zuul/latest/drivers/mqtt.html */
const REPORT = new JsonReader(objectOf({ buildset: objectOf({ builds: { type: 'array' } }) }));

/** Poller that waits for builds of a job. */
export interface Subscriber {
  readonly job: string;
  /**
   * Called when a build of the job has finished, or may have finished, because reports sent before the subscription are
   * lost.
   */
  readonly wake: () => void;
}

/** A connection to a broker. */
interface Connection {
  readonly subscribers: Set<Subscriber>;
  readonly close: () => Promise<void>;
}

/** Reports of Zuul's MQTT reporter. Subscriptions with the same settings share a connection. */
export class BuildReports {
  readonly #logger: Logger;
  readonly #connections = new Map<string, Connection>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /**
   * Subscribes to reports. Returns a function that ends the subscription. @throws TypeError if the URL of the broker is
   * invalid
   */
  subscribe(settings: MqttSettings, subscriber: Subscriber): () => Promise<void> {
    const key = JSON.stringify(settings, Object.keys(settings).toSorted());
    const connection = this.#connections.get(key) ?? this.#listen(settings);
    this.#connections.set(key, connection);
    connection.subscribers.add(subscriber);
    return async () => {
      connection.subscribers.delete(subscriber);
      if (connection.subscribers.size > 0 || this.#connections.get(key) !== connection) return;
      this.#connections.delete(key);
      await connection.close();
    };
  }

  #listen(settings: MqttSettings): Connection {
    const broker = `MQTT broker ${new URL(settings.url).host}`;
    const subscribers = new Set<Subscriber>();
    const onSubscribed = (): void => {
      for (const { wake } of subscribers) wake();
    };
    const onMessage = (payload: Uint8Array): void => {
      try {
        const jobs = finishedJobs(payload);
        for (const { job, wake } of subscribers) if (jobs.has(job)) wake();
      } catch (error) {
        const reason = (error as Error).message;
        this.#logger.debug(`ignored an MQTT message that is not a report of Zuul: ${reason}`);
      }
    };
    const closing = new AbortController();
    const handlers = { onSubscribed, onMessage };
    const running = listenToBroker(broker, settings, handlers, this.#logger, closing.signal);
    return {
      subscribers,
      close: async () => {
        closing.abort();
        await running;
      },
    };
  }
}

/**
 * Returns the jobs with a finished build in a message of Zuul's MQTT reporter, with any result. For a job with a
 * `success-message`, the reporter sends that text as the result of its successful builds. Builds in another form are
 * ignored.
 *
 * @throws Error with the reason, if the payload is not a message of this reporter
 */
export function finishedJobs(payload: Uint8Array): ReadonlySet<string> {
  if (payload.length > MAX_MESSAGE_SIZE) throw new Error(`its ${payload.length} bytes are too many`);
  const { builds } = REPORT.parse(Buffer.from(payload).toString()).buildset;
  const jobs = builds.flatMap((build) => {
    const { job_name: job, result }: Readonly<Record<string, unknown>> = Object(build);
    return typeof job === 'string' && typeof result === 'string' ? [job] : [];
  });
  return new Set(jobs);
}
