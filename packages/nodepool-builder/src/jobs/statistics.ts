import { stat } from 'node:fs/promises';
import { ImageError, type ImageErrorCode, type ImageFile } from '@nodepool-builder/image-builder';

/** Takes numbers; a statsd client, say. */
export interface StatisticsSink {
  /** A duration in milliseconds. */
  timing(key: string, milliseconds: number): void;
  /** One more of its kind. */
  increment(key: string): void;
  gauge(key: string, value: number): void;
}

/** What a shell would give as the exit code of a build that did not end by one. */
const RETURN_CODES: Partial<Record<ImageErrorCode, number>> = {
  'build-timeout': 124,
  'command-not-found': 127,
};
const FAILED = 1;

/** The numbers that nodepool's builder has always sent, under its keys: of what succeeded. `status.…` is newer. */
export class Statistics {
  readonly #sink: StatisticsSink | undefined;

  /** @param sink without it nothing is sent */
  constructor(sink: StatisticsSink | undefined) {
    this.#sink = sink;
  }

  /** An image was built. Its size is what it takes on the disk: sparse files have holes. */
  async built(diskimage: string, milliseconds: number, files: readonly ImageFile[]): Promise<void> {
    if (this.#sink === undefined) return;
    const key = `nodepool.dib_image_build.${diskimage}`;
    for (const { format, path } of files) {
      this.#sink.gauge(`${key}.${format}.size`, (await stat(path)).blocks * 512);
    }
    this.#sink.timing(key, milliseconds);
    this.#sink.increment(key);
  }

  /** A build has ended, well or with an error. */
  buildEnded(diskimage: string, milliseconds: number, error?: unknown): void {
    const key = `nodepool.dib_image_build.${diskimage}.status`;
    this.#sink?.gauge(`${key}.rc`, error === undefined ? 0 : returnCode(error));
    this.#sink?.gauge(`${key}.duration`, Math.floor(milliseconds));
    this.#sink?.gauge(`${key}.last_build`, Math.floor(Date.now() / 1000));
  }

  /** An image was uploaded. */
  uploaded(imageName: string, provider: string, milliseconds: number): void {
    const key = `nodepool.image_update.${imageName}.${provider}`;
    this.#sink?.timing(key, milliseconds);
    this.#sink?.increment(key);
  }

  /** A request to a cloud was answered. */
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
