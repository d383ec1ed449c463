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
  );
  if (offers.length === 0) throw new CommandError(`no builder offers ${name}`, 'not-found');
  return offers;
}

/**
 * Explains a denial: names the right that the access list of the job server has to grant. Returns other errors
 * unchanged.
 */
export function explainDenial(name: string, error: unknown): unknown {
  if (!(error instanceof ServerError && error.serverCode === 'ACCESS_DENIED')) return error;
  const remedy = 'add it to "submit" of this certificate in the access list of the job server';
  return new CommandError(`${error.message}, ${name}; ${remedy}`, 'refused', { cause: error });
}

/**
 * Has a builder run a job that takes no time.
 *
 * @param timeout in milliseconds
 * @throws CommandError `refused`; `unreachable` if the builder does not reply in time; GearmanError
 */
export async function submitTo(
  servers: readonly ServerAddress[],
  name: string,
  argument: string,
  timeout: number,
  signal: AbortSignal,
): Promise<Buffer> {
  const client = new Client({ servers, clientId: 'nodepool-builder web' });
  const limit = AbortSignal.timeout(timeout);
  try {
    return await client.submit(name, argument, { signal: AbortSignal.any([signal, limit]) });
  } catch (error) {
    if (!limit.aborted || signal.aborted) throw explainDenial(name, error);
    const workers = await askServers(servers, (admin) => admin.workers(), signal).catch(() => []);
    const addresses = new Set(
      workers.filter(({ functions }) => functions.includes(name)).map(({ ip }) => ip),
    );
    const builder = ['the builder', ...addresses].join(' ');
    const problem = `${builder} did not reply to ${name} within ${timeout / 1000} s`;
    throw new CommandError(`${problem}; try again, or restart it if it hangs`, 'unreachable', {
      cause: error,
    });
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
  signal: AbortSignal = new AbortController().signal,
): Promise<void> {
  const what = uploadId === undefined ? `build ${imageId}` : `upload ${uploadId}`;
  const name = cancelFunction(imageId);
  try {
    const offering = await serversOffering(servers, name, signal);
    await submitTo(offering, name, encodeCancel(by, uploadId), TIMEOUT, signal);
  } catch (cause) {
    const isGone = cause instanceof CommandError && cause.exitReason === 'not-found';
    if (!isGone && !(cause instanceof JobFailedError || cause instanceof JobExceptionError)) throw cause;
    const reason = "it does not run, or its builder's release does not support it";
    throw new CommandError(`${what} was not cancelled: ${reason}`, 'refused', { cause });
  }
}
