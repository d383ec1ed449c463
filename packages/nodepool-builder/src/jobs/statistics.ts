import { stat } from 'node:fs/promises';
import { ImageError, type ImageErrorCode, type ImageFile } from '@nodepool-builder/image-builder';

/** Receives metrics, for example a statsd client. */
export interface StatisticsSink {
  /** Sends a duration in milliseconds. */
  timing(key: string, milliseconds: number): void;
  /** Increments a counter. */
  increment(key: string): void;
  gauge(key: string, value: number): void;
}

/** Exit codes that a shell would report for builds without an exit code. */
const RETURN_CODES: Partial<Record<ImageErrorCode, number>> = {
  'build-timeout': 124,
  'command-not-found': 127,
};
const FAILED = 1;

/** The metrics of nodepool's builder, under its keys, for what succeeded. Only `status.…` covers failures. */
export class Statistics {
  readonly #sink: StatisticsSink | undefined;

  /** @param sink undefined to send nothing */
  constructor(sink: StatisticsSink | undefined) {
    this.#sink = sink;
  }

  /** Reports a built image. Its size is its allocated space, because sparse files have holes. */
  async built(diskimage: string, milliseconds: number, files: readonly ImageFile[]): Promise<void> {
    if (this.#sink === undefined) return;
    const key = `nodepool.dib_image_build.${diskimage}`;
    for (const { format, path } of files) {
      this.#sink.gauge(`${key}.${format}.size`, (await stat(path)).blocks * 512);
    }
    this.#sink.timing(key, milliseconds);
    this.#sink.increment(key);
  }

  /** Reports the end of a build, with or without an error. */
  buildEnded(diskimage: string, milliseconds: number, error?: unknown): void {
    const key = `nodepool.dib_image_build.${diskimage}.status`;
    this.#sink?.gauge(`${key}.rc`, error === undefined ? 0 : returnCode(error));
    this.#sink?.gauge(`${key}.duration`, Math.floor(milliseconds));
    this.#sink?.gauge(`${key}.last_build`, Math.floor(Date.now() / 1000));
  }

  /** Reports an upload. */
  uploaded(imageName: string, provider: string, milliseconds: number): void {
    const key = `nodepool.image_update.${imageName}.${provider}`;
    this.#sink?.timing(key, milliseconds);
    this.#sink?.increment(key);
  }

  /** Reports a request to a cloud. */
  task(provider: string, task: string, milliseconds: number): void {
    const key = `nodepool.task.${provider}.${task}`;
    this.#sink?.timing(key, milliseconds);
    this.#sink?.increment(key);
  }
}

function returnCode(error: unknown): number {
  if (!(error instanceof ImageError)) return FAILED;
  const { exitCode } = Object(error.cause) as { exitCode?: unknown };
  return typeof exitCode === 'number' ? exitCode : (RETURN_CODES[error.code] ?? FAILED);
}
