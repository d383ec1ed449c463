import { stat } from 'node:fs/promises';
import {
  ImageError,
  type ImageErrorCode,
  type ImageFile,
  type Logger,
} from '@nodepool-builder/image-builder';
import { partDone } from '@nodepool-builder/image-builder/internal';
import { StatsD } from 'hot-shots';
import { CancelledError } from '../../protocol/job-reply.ts';
import type { MeteredProgress } from './progress-meter.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Result of a job. An interrupted job runs again, because its builder was stopped or lost the job server. */
export type JobResult = 'success' | 'failure' | 'cancelled' | 'interrupted';

/** An upload, identified by names of the configuration. */
export interface UploadSubject {
  readonly diskimage: string;
  readonly provider: string;
  /** `providers[].images[].name`. */
  readonly imageName: string;
}

/** An event of the jobs and providers of this process. */
export type JobEvent = Readonly<
  | { kind: 'build-started'; diskimage: string }
  | { kind: 'build-ended'; diskimage: string; result: JobResult; seconds: number }
  | ({ kind: 'upload-started' } & UploadSubject)
  /** The size of the file is undefined if no file was read. */
  | ({ kind: 'upload-ended'; result: JobResult; seconds: number; size: number | undefined } & UploadSubject)
  /** Bytes that an upload has sent since the last such event. */
  | { kind: 'sent'; provider: string; bytes: number }
  | { kind: 'converted'; format: string; seconds: number }
  /** A request to a provider. */
  | { kind: 'requested'; provider: string; request: string; seconds: number }
  /** Parts of an upload without a job, or an instance without a build, were deleted or could not be deleted. */
  | { kind: 'orphan-ended'; orphan: 'upload' | 'instance'; provider: string; isDeleted: boolean }
>;

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
 * Receives the measurements of this process's jobs. Sends the metrics of nodepool's builder, under its keys, to statsd
 * over UDP. A missing server is not an error. In statsd, only `status.…` includes failures. {@link JobEvent} listeners,
 * such as the metrics for Prometheus, receive all measurements.
 */
export class Statistics implements AsyncDisposable {
  readonly #client: StatsD | undefined;
  /** Receives the events that are not sent to statsd. */
  readonly onEvent: (event: JobEvent) => void;

  constructor(environment: Environment, logger: Logger, onEvent: (event: JobEvent) => void = () => {}) {
    this.onEvent = onEvent;
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
  buildEnded(diskimage: string, milliseconds: number, signal: AbortSignal, error?: unknown): void {
    const result = error === undefined ? 'success' : resultOf(error, signal);
    this.onEvent({ kind: 'build-ended', diskimage, result, seconds: milliseconds / 1000 });
    const key = `nodepool.dib_image_build.${diskimage}.status`;
    this.#client?.gauge(`${key}.rc`, error === undefined ? 0 : returnCode(error));
    this.#client?.gauge(`${key}.duration`, Math.floor(milliseconds));
    this.#client?.gauge(`${key}.last_build`, Math.floor(Date.now() / 1000));
  }

  /**
   * Runs an upload, and reports its progress and its end.
   *
   * @throws errors of the work
   */
  async upload<T>(
    subject: UploadSubject,
    { signal, onProgress }: { signal: AbortSignal; onProgress: (progress: MeteredProgress) => void },
    work: (onProgress: (progress: MeteredProgress) => void) => Promise<T>,
  ): Promise<T> {
    const { provider, imageName } = subject;
    const started = performance.now();
    let size: number | undefined;
    let position = 0;
    const onPart = (progress: MeteredProgress): void => {
      onProgress(progress);
      size = progress.size ?? size;
      const before = position;
      position = Math.floor(partDone(progress) * (size ?? 0));
      const bytes = position < before ? position : position - before; // a transfer that starts again sends them again
      if (bytes === 0) return;
      this.onEvent({ kind: 'sent', provider, bytes });
    };
    const ended = (result: JobResult): void => {
      const seconds = (performance.now() - started) / 1000;
      this.onEvent({ kind: 'upload-ended', ...subject, result, seconds, size });
    };
    this.onEvent({ kind: 'upload-started', ...subject });
    try {
      const value = await work(onPart);
      this.#took(`nodepool.image_update.${imageName}.${provider}`, performance.now() - started);
      ended('success');
      return value;
    } catch (error) {
      ended(resultOf(error, signal));
      throw error;
    }
  }

  /** Reports a request to a cloud. */
  task(provider: string, task: string, milliseconds: number): void {
    this.#took(`nodepool.task.${provider}.${task}`, milliseconds);
    this.onEvent({ kind: 'requested', provider, request: task, seconds: milliseconds / 1000 });
  }

  /** Sends pending metrics. */
  async [Symbol.asyncDispose](): Promise<void> {
    const client = this.#client;
    if (client !== undefined) await new Promise<void>((resolve) => client.close(() => resolve()));
  }

  #took(key: string, milliseconds: number): void {
    // Formatted like Python's statsd client. hot-shots sends the value unchanged, and a number would lose its decimals.
    this.#client?.timing(key, Math.floor(milliseconds).toFixed(6) as unknown as number);
    this.#client?.increment(key);
  }
}

function resultOf(error: unknown, { aborted, reason }: AbortSignal): JobResult {
  if (error instanceof CancelledError || reason instanceof CancelledError) return 'cancelled';
  return aborted ? 'interrupted' : 'failure';
}

function returnCode(error: unknown): number {
  if (!(error instanceof ImageError)) return FAILED;
  const { exitCode } = Object(error.cause) as { exitCode?: unknown };
  return typeof exitCode === 'number' ? exitCode : (RETURN_CODES[error.code] ?? FAILED);
}
