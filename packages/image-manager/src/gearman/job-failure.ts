import { hostname } from 'node:os';
import {
  Client,
  GearmanError,
  JobExceptionError,
  JobFailedError,
  type ServerAddress,
} from '@nodepool-builder/gearman-node';
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
    /** Process id of the builder, which has logged the failure. */
    pid: { type: 'integer' },
    /** Start of that process, `performance.timeOrigin`: containers of one host name have the same process ids. */
    started: { type: 'number' },
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

/** Abort reason for a task that somebody cancels. */
export class CancelRequest extends Error {
  override readonly name = 'CancelRequest';
  /** Who cancels it: `root@host`. */
  readonly by: string;

  constructor(by: string) {
    super(`cancelled by ${by}`);
    this.by = by;
  }
}

/** Returns who cancelled a job, for its record. */
export function cancellationOf(error: unknown, signal: AbortSignal): { readonly cancelledBy?: string } {
  if (signal.reason instanceof CancelRequest) return { cancelledBy: signal.reason.by };
  const by = causeOf(error)?.['cancelled-by'];
  return by === undefined ? {} : { cancelledBy: by };
}

/** True if a builder in this process has failed, and has logged it. */
export function isLogged(error: unknown): boolean {
  const { host, pid, started } = causeOf(error) ?? {};
  return pid === process.pid && started === performance.timeOrigin && host === hostname();
}

/** What the builder said about the cause of an error. */
function causeOf(error: unknown): Failure | undefined {
  return error instanceof GearmanError ? failureOf(error.cause) : undefined;
}

/** Who has cancelled a job at the job server: an operator with the admin command `cancel job`. */
export const GEARADMIN = 'gearadmin';

/**
 * Recognizes a job that an operator has cancelled with `gearadmin --cancel-job`: our job server says so, and gearmand
 * still knows the job, unlike one whose worker has failed.
 *
 * @param client the one that got the error
 * @returns the error with that reason; undefined for another error
 */
export async function operatorCancellation(
  error: unknown,
  functionName: string,
  client: Pick<Client, 'status'>,
): Promise<JobFailedError | undefined> {
  if (!(error instanceof JobFailedError)) return undefined;
  const told = failureOf(error);
  if (told !== undefined) return told['cancelled-by'] === GEARADMIN ? error : undefined;
  const isKnown = (await client.status(error.handle).catch(() => undefined))?.known === true;
  if (!isKnown) return undefined;
  const failure: Failure = {
    reason: 'cancelled by gearadmin',
    host: 'the job server',
    'cancelled-by': GEARADMIN,
  };
  return new JobFailedError(functionName, error.handle, Buffer.from(JSON.stringify(failure)));
}

/** Time limit for a builder to stop a job, in milliseconds. */
const STOP_TIMEOUT = 10_000;

/**
 * Has the builder that runs a build or an upload stop it. If it has just begun, waits until the builder offers that.
 *
 * @param by who cancels it: `root@host`
 * @throws GearmanError
 */
export async function stopAtBuilder(
  servers: readonly ServerAddress[],
  imageId: string,
  by: string,
  uploadId?: string,
): Promise<void> {
  const client = new Client({ servers, clientId: 'image-manager' });
  try {
    const argument = JSON.stringify({ by, 'upload-id': uploadId });
    await client.submit(`image-cancel:${imageId}`, argument, { timeout: STOP_TIMEOUT });
  } finally {
    await client.close();
  }
}

/** Returns a failed job's error with the builder's reason as its message; any other value as it is. */
export function withReason(error: unknown): unknown {
  const failure = failureOf(error);
  if (failure === undefined) return error;
  const { code } = error as GearmanError;
  return new GearmanError(code, `${failure.reason} (on ${failure.host})`, { cause: error });
}
