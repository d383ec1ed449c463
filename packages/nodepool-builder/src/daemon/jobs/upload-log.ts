import type { Logger } from '@nodepool-builder/image-builder';
import {
  BuildLog,
  hiddenValues,
  type Retry,
  retryText,
  watchRetries,
} from '@nodepool-builder/image-builder/internal';
import { localTime } from '../../logging/record-format.ts';
import { errorLine } from '../../terms/command-error.ts';

/** Settings of {@link withUploadLog}. */
export interface UploadLogOptions
  extends Pick<Parameters<typeof BuildLog.open>[0], 'directory' | 'retention'> {
  readonly imageId: string;
  readonly imageName: string;
  readonly upload: { readonly id: string; readonly provider: string };
  /** Logger that also receives all lines. */
  readonly logger: Logger;
}

/**
 * Runs an upload with its own log next to the build logs, which `nodepool-builder logs` shows on any host. If the log
 * fails, the upload continues without it.
 */
export async function withUploadLog<T>(
  options: UploadLogOptions,
  work: (logger: Logger) => Promise<T>,
): Promise<T> {
  const { logger } = options;
  const log = await BuildLog.open({ ...options, secrets: hiddenValues(), onLine: undefined }).catch(
    (error: unknown) => void logger.warn(`cannot write a log of the upload: ${errorLine(error)}`),
  );
  const write = (text: string): void => void log?.write(`${localTime(new Date())} ${text}`);
  const both =
    (level: keyof Logger) =>
    (message: string, meta?: object): void => {
      write(message);
      logger[level](message, meta);
    };
  const onRetry = (retry: Retry | undefined): void => {
    if (retry !== undefined) write(`${retryText(retry)}: ${retry.error.message}`);
  };
  const levels = { debug: both('debug'), info: both('info'), warn: both('warn'), error: both('error') };
  try {
    return await watchRetries(onRetry, () => work(levels));
  } catch (error) {
    write(`failed: ${errorLine(error)}`);
    throw error;
  } finally {
    await log?.close();
  }
}
