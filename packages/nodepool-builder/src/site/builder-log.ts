import { JobExceptionError, JobFailedError, type ServerAddress } from '@nodepool-builder/gearman-node';
import { decodeLogPart, encodeLogRequest, logFunction } from '../protocol/log-part.ts';
import { CommandError } from '../terms/command-error.ts';
import { serversOffering, submitTo } from './control-jobs.ts';
import type { ReadLog } from './log-source.ts';

/** The log of a build, or of an upload of its image. */
export interface LogName {
  readonly imageId: string;
  readonly uploadId?: string;
}

/** Seconds for which a builder waits for more lines. */
const WAIT = 20;

/** Timeout of the builder's reply after that, in milliseconds. */
const TIMEOUT = 10_000;

/** Reads a log over Gearman, from the builder that has it. */
export function builderLog(
  servers: readonly ServerAddress[],
  { imageId, uploadId }: LogName,
  wait = WAIT,
): ReadLog {
  const name = logFunction(imageId);
  let offering: readonly ServerAddress[] | undefined;
  return async (offset, signal) => {
    const argument = encodeLogRequest({
      offset,
      wait,
      ...(uploadId !== undefined && { 'upload-id': uploadId }),
    });
    try {
      offering ??= await serversOffering(servers, name, signal);
      return decodeLogPart(await submitTo(offering, name, argument, wait * 1000 + TIMEOUT, signal));
    } catch (error) {
      offering = undefined; // another builder may now have it
      if (!(error instanceof JobFailedError || error instanceof JobExceptionError)) throw error;
      throw new CommandError('no builder has this log', 'not-found', { cause: error });
    }
  };
}
