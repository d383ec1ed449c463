import { Client, JobFailedError, type ServerAddress } from '@nodepool-builder/gearman-node';
import { cancelFunction, encodeCancel } from '../protocol/image-cancel.ts';
import { causeOf, decodeFailure, encodeOperatorCancellation, GEARADMIN } from '../protocol/job-failure.ts';

/** Abort reason for a task that a user cancels. */
export class CancelRequest extends Error {
  override readonly name = 'CancelRequest';
  /** User who cancels it: `root@host`. */
  readonly by: string;

  constructor(by: string) {
    super(`cancelled by ${by}`);
    this.by = by;
  }
}

/** Returns the user who cancelled a job, for its record. */
export function cancellationOf(error: unknown, signal: AbortSignal): { readonly cancelledBy?: string } {
  if (signal.reason instanceof CancelRequest) return { cancelledBy: signal.reason.by };
  const by = causeOf(error)?.['cancelled-by'];
  return by === undefined ? {} : { cancelledBy: by };
}

/**
 * Recognises a job that an operator has cancelled with `gearadmin --cancel-job`. Our job server reports it, and
 * gearmand still has the job, unlike a job whose worker has failed.
 *
 * @param client the client that got the error
 * @returns the error with that reason; undefined for another error
 */
export async function operatorCancellation(
  error: unknown,
  functionName: string,
  client: Pick<Client, 'status'>,
): Promise<JobFailedError | undefined> {
  if (!(error instanceof JobFailedError)) return undefined;
  const told = decodeFailure(error);
  if (told !== undefined) return told['cancelled-by'] === GEARADMIN ? error : undefined;
  const isKnown = (await client.status(error.handle).catch(() => undefined))?.known === true;
  if (!isKnown) return undefined;
  return new JobFailedError(functionName, error.handle, Buffer.from(encodeOperatorCancellation()));
}

/** Timeout for a builder to stop a job, in milliseconds. */
const STOP_TIMEOUT = 10_000;

/**
 * Requests the builder that runs a build or an upload to stop it. If the job has just started, waits until the builder
 * offers that function.
 *
 * @param by user who cancels it: `root@host`
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
    await client.submit(cancelFunction(imageId), encodeCancel(by, uploadId), { timeout: STOP_TIMEOUT });
  } finally {
    await client.close();
  }
}
