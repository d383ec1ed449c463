import { stat } from 'node:fs/promises';
import {
  ImageError,
  type ImageErrorCode,
  type ImageFile,
  type Logger,
} from '@nodepool-builder/image-builder';
import { StatsD } from 'hot-shots';

type Environment = Readonly<Record<string, string | undefined>>;

/** Exit codes that a shell would report for builds without an exit code. */
const RETURN_CODES: Partial<Record<ImageErrorCode, number>> = {
  'build-timeout': 124,
  'command-not-found': 127,
};
const FAILED = 1;

/** Returns the address of statsd; undefined if neither of the variables of Python's statsd client is set. */
export function statsdAddress(
  env: Environment,
): { readonly host: string; readonly port: number } | undefined {
  const { STATSD_HOST: host = '', STATSD_PORT: port = '' } = env;
  if (host === '' && port === '') return undefined;
  return { host: host || 'localhost', port: Number(port || 8125) };
}

/**
 * Sends the metrics of nodepool's builder, under its keys, to statsd over UDP; a missing server is not an error. Only
 * `status.…` covers failures.
 */
export class Statistics implements AsyncDisposable {
  readonly #client: StatsD | undefined;

  constructor(environment: Environment, logger: Logger) {
    const address = statsdAddress(environment);
    if (address === undefined) return;
    this.#client = new StatsD({
      ...address,
      // Datadog's additions are not plain statsd.
      datadog: false,
      includeDataDogTags: false,
      errorHandler: (error) => logger.debug(`statsd at ${address.host}:${address.port}: ${error.message}`),
    });
  }

  /** Reports a built image. Its size is its allocated space, because sparse files have holes. */
  async built(diskimage: string, milliseconds: number, files: readonly ImageFile[]): Promise<void> {
    if (this.#client === undefined) return;
    const key = `nodepool.dib_image_build.${diskimage}`;
    for (const { format, path } of files) {
      this.#client.gauge(`${key}.${format}.size`, (await stat(path)).blocks * 512);
    }
    this.#took(key, milliseconds);
  }

  /** Reports the end of a build, with or without an error. */
  buildEnded(diskimage: string, milliseconds: number, error?: unknown): void {
    const key = `nodepool.dib_image_build.${diskimage}.status`;
    this.#client?.gauge(`${key}.rc`, error === undefined ? 0 : returnCode(error));
    this.#client?.gauge(`${key}.duration`, Math.floor(milliseconds));
    this.#client?.gauge(`${key}.last_build`, Math.floor(Date.now() / 1000));
  }

  uploaded(imageName: string, provider: string, milliseconds: number): void {
    this.#took(`nodepool.image_update.${imageName}.${provider}`, milliseconds);
  }

  /** Reports a request to a cloud. */
  task(provider: string, task: string, milliseconds: number): void {
    this.#took(`nodepool.task.${provider}.${task}`, milliseconds);
  }

  /** Sends pending metrics. */
  async [Symbol.asyncDispose](): Promise<void> {
    const client = this.#client;
    if (client !== undefined) await new Promise<void>((resolve) => client.close(() => resolve()));
  }

  #took(key: string, milliseconds: number): void {
    // As Python's statsd writes it; hot-shots sends the value as it is, and a number would lose its decimals.
    this.#client?.timing(key, Math.floor(milliseconds).toFixed(6) as unknown as number);
    this.#client?.increment(key);
  }
}

function returnCode(error: unknown): number {
  if (!(error instanceof ImageError)) return FAILED;
  const { exitCode } = Object(error.cause) as { exitCode?: unknown };
  return typeof exitCode === 'number' ? exitCode : (RETURN_CODES[error.code] ?? FAILED);
}
