import { hostname, userInfo } from 'node:os';
import {
  Client,
  JobExceptionError,
  JobFailedError,
  type ServerAddress,
  ServerError,
} from '@nodepool-builder/gearman-node';
import { cancelFunction, encodeCancel } from '@nodepool-builder/image-manager/protocol';
import { CommandError } from '../terms/command-error.ts';
import { askServers } from './ask-servers.ts';

/** Timeout of a builder's reply, in milliseconds. */
const TIMEOUT = 10_000;

/**
 * Returns the job servers at which a builder offers a function.
 *
 * @throws CommandError `not-found` if there is none; GearmanError
 */
export async function serversOffering(
  servers: readonly ServerAddress[],
  name: string,
  signal: AbortSignal,
): Promise<readonly ServerAddress[]> {
  const offers = await askServers(
    servers,
    async (admin, server) =>
      (await admin.status()).some((one) => one.name === name && one.availableWorkers > 0) ? [server] : [],
    signal,
    TIMEOUT,
  );
  if (offers.length === 0) throw new CommandError(`no builder offers ${name}`, { exitReason: 'not-found' });
  return offers;
}

/**
 * Explains a denial: names the right that the access list of the job server has to grant. Returns other errors
 * unchanged.
 */
export function explainDenial(name: string, error: unknown): unknown {
  if (!(error instanceof ServerError && error.serverCode === 'ACCESS_DENIED')) return error;
  const remedy = 'add it to "submit" of this certificate in the access list of the job server';
  return new CommandError(`${error.message}, ${name}; ${remedy}`, {
    exitReason: 'refused',
    cause: error,
  });
}

/** @throws CommandError `refused`; GearmanError */
export async function submitTo(
  servers: readonly ServerAddress[],
  name: string,
  argument: string,
  signal: AbortSignal,
): Promise<Buffer> {
  const client = new Client({ servers, clientId: 'nodepool-builder web' });
  try {
    return await client.submit(name, argument, { signal });
  } catch (error) {
    throw explainDenial(name, error);
  } finally {
    await client.close();
  }
}

/** The user who runs this process: `root@host`. */
export function thisUser(): string {
  try {
    return `${userInfo().username}@${hostname()}`;
  } catch {
    return `${process.getuid?.()}@${hostname()}`; // the user database does not contain this user
  }
}

/**
 * Requests a builder to stop the build or the upload of an image.
 *
 * @param by user who cancels it: `root@host`
 * @throws CommandError `refused` if it does not run
 */
export async function cancelJob(
  servers: readonly ServerAddress[],
  imageId: string,
  by: string,
  uploadId?: string,
  signal?: AbortSignal,
): Promise<string> {
  const what = uploadId === undefined ? `build ${imageId}` : `upload ${uploadId}`;
  const limit = AbortSignal.any([AbortSignal.timeout(TIMEOUT), ...(signal === undefined ? [] : [signal])]);
  const name = cancelFunction(imageId);
  try {
    const offering = await serversOffering(servers, name, limit);
    await submitTo(offering, name, encodeCancel(by, uploadId), limit);
    return 'cancelled';
  } catch (cause) {
    const isGone = cause instanceof CommandError && cause.exitReason === 'not-found';
    if (!isGone && !(cause instanceof JobFailedError || cause instanceof JobExceptionError)) throw cause;
    const reason = "it does not run, or its builder's release does not support it";
    throw new CommandError(`${what} was not cancelled: ${reason}`, { exitReason: 'refused', cause });
  }
}
