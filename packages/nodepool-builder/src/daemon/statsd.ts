import type { Logger } from '@nodepool-builder/image-builder';
import { StatsD } from 'hot-shots';
import type { StatisticsSink } from '../jobs/statistics.ts';

/** Where a statsd server listens. */
export interface StatsdAddress {
  readonly host: string;
  readonly port: number;
}

/** What Python's statsd takes from the environment: either of the variables turns it on. */
export function statsdAddress(env: Readonly<Record<string, string | undefined>>): StatsdAddress | undefined {
  const { STATSD_HOST: host = '', STATSD_PORT: port = '' } = env;
  if (host === '' && port === '') return undefined;
  return { host: host || 'localhost', port: Number(port || 8125) };
}

/** Sends numbers to a statsd server by UDP: that it is not there is no fault. */
export class Statsd implements StatisticsSink {
  readonly #client: StatsD;

  constructor({ host, port }: StatsdAddress, logger: Logger) {
    this.#client = new StatsD({
      host,
      port,
      // Datadog's additions are not plain statsd.
      datadog: false,
      includeDataDogTags: false,
      errorHandler: (error) => logger.debug(`statsd at ${host}:${port}: ${error.message}`),
    });
  }

  timing(key: string, milliseconds: number): void {
    // As Python's statsd writes it; hot-shots sends on what it is given, and a number would lose its decimals.
    this.#client.timing(key, Math.floor(milliseconds).toFixed(6) as unknown as number);
  }

  increment(key: string): void {
    this.#client.increment(key);
  }

  gauge(key: string, value: number): void {
    this.#client.gauge(key, value);
  }

  /** Sends what is on its way. */
  async close(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#client.close(() => resolve());
    });
  }
}
