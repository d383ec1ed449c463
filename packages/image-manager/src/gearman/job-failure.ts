import { GearmanError, JobExceptionError, JobFailedError } from '@nodepool-builder/gearman-node';
import type { SettingsOf } from '@nodepool-builder/image-builder';
import { JsonReader } from '@nodepool-builder/image-builder/module-kit';

const TEXT = { type: 'string' } as const;

const FAILURE = {
  type: 'object',
  required: ['reason', 'host'],
  properties: {
    reason: TEXT,
    /** Host name of the builder. */
    host: TEXT,
    /** Who cancelled the job, if it was cancelled: `root@host`. */
    'cancelled-by': TEXT,
  },
} as const;

const READER = new JsonReader(FAILURE);

/**
 * Why a job failed. A builder sends it in WORK_WARNING, right before WORK_FAIL or WORK_EXCEPTION, to clients whose
 * argument has `"reason": true`.
 */
export type Failure = SettingsOf<typeof FAILURE>;

/** Returns what the builder said about a failed job; undefined for other errors, and from builders that say nothing. */
export function failureOf(error: unknown): Failure | undefined {
  if (!(error instanceof JobFailedError || error instanceof JobExceptionError)) return undefined;
  try {
    return READER.parse(error.warning?.toString() ?? '');
  } catch {
    return undefined;
  }
}

/** Returns who cancelled a job, for its record. */
export function cancellationOf(error: unknown): { readonly cancelledBy?: string } {
  const by = error instanceof GearmanError ? failureOf(error.cause)?.['cancelled-by'] : undefined;
  return by === undefined ? {} : { cancelledBy: by };
}

/** Returns a failed job's error with the builder's reason as its message; any other value as it is. */
export function withReason(error: unknown): unknown {
  const failure = failureOf(error);
  if (failure === undefined) return error;
  const { code } = error as GearmanError;
  return new GearmanError(code, `${failure.reason} (on ${failure.host})`, { cause: error });
}
