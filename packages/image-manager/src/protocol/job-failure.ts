import { hostname } from 'node:os';
import { GearmanError, JobExceptionError, JobFailedError } from '@nodepool-builder/gearman-node';
import type { SettingsOf } from '@nodepool-builder/image-builder';
import { NUMBER, objectOf, TEXT } from '@nodepool-builder/image-builder/internal';
import { JsonReader } from '@nodepool-builder/image-builder/plugin';

const FAILURE = objectOf(
  {
    reason: TEXT,
    /** Host name of the builder. */
    host: TEXT,
  },
  {
    /** Process id of the builder, which has logged the failure. */
    pid: { type: 'integer' },
    /** Start of that process (`performance.timeOrigin`), because containers with one host name share process ids. */
    started: NUMBER,
    /** User who cancelled the job, if it was cancelled: `root@host`. */
    'cancelled-by': TEXT,
  },
);

const READER = new JsonReader(FAILURE);

/**
 * Reason of a failed job. A builder sends it in WORK_WARNING, right before WORK_FAIL or WORK_EXCEPTION, to clients
 * whose argument has `"reason": true`, because nodepool's daemon would take any warning for the result.
 */
export type Failure = SettingsOf<typeof FAILURE>;

/** Maximum number of characters of a reason. */
const MAX_REASON = 10_000;

/** Formats the failure of a job of this process. */
export function encodeFailure(reason: string, cancelledBy?: string): string {
  const failure: Failure = {
    reason: reason.slice(0, MAX_REASON),
    host: hostname(),
    pid: process.pid,
    started: performance.timeOrigin,
    ...(cancelledBy !== undefined && { 'cancelled-by': cancelledBy }),
  };
  return JSON.stringify(failure);
}

/** `cancelled-by` of a job that an operator cancelled at the job server with the admin command `cancel job`. */
export const GEARADMIN = 'gearadmin';

/** Formats the failure of a job that `gearadmin --cancel-job` ends at the job server. */
export function encodeOperatorCancellation(): string {
  const failure: Failure = {
    reason: `cancelled by ${GEARADMIN}`,
    host: 'the job server',
    'cancelled-by': GEARADMIN,
  };
  return JSON.stringify(failure);
}

/** Returns the builder's report of a failed job; undefined for other errors, and from builders that send none. */
export function decodeFailure(error: unknown): Failure | undefined {
  if (!(error instanceof JobFailedError || error instanceof JobExceptionError)) return undefined;
  try {
    return READER.parse(error.warning?.toString() ?? '');
  } catch {
    return undefined;
  }
}

/** Returns a failed job's error with the builder's reason as its message. Returns any other value unchanged. */
export function withReason(error: unknown): unknown {
  const failure = decodeFailure(error);
  if (failure === undefined) return error;
  const { code } = error as GearmanError;
  return new GearmanError(code, `${failure.reason} (on ${failure.host})`, { cause: error });
}

/** Returns the failure that {@link withReason} has put into the message of an error. */
export function causeOf(error: unknown): Failure | undefined {
  return error instanceof GearmanError ? decodeFailure(error.cause) : undefined;
}

/** Returns whether a builder in this process has failed, and has logged it. */
export function isLogged(error: unknown): boolean {
  const { host, pid, started } = causeOf(error) ?? {};
  return pid === process.pid && started === performance.timeOrigin && host === hostname();
}
