import {
  Admin,
  ConnectionError,
  formatAddress,
  type ServerAddress,
} from '@nodepool-builder/gearman-node/admin';
import { CommandError, choiceOf } from '../commands/output.ts';
import { subjectOf, verbOf } from './functions.ts';

/** Time limit for the answer of a job server, in milliseconds. */
const TIMEOUT = 10_000;

/**
 * Asks all job servers at once and concatenates their answers. A server that does not answer is left out.
 *
 * @param timeout for each server, in milliseconds
 * @throws ConnectionError `connect-failed` if no server answers
 * @throws the signal's reason
 */
export async function askServers<T>(
  servers: readonly ServerAddress[],
  question: (admin: Admin, server: ServerAddress) => Promise<T[]>,
  signal?: AbortSignal,
  timeout: number = TIMEOUT,
): Promise<T[]> {
  const answers = await Promise.allSettled(
    servers.map(async (server) => {
      signal?.throwIfAborted();
      const admin = new Admin(server, { timeout });
      const hangUp = (): void => void admin.close();
      signal?.addEventListener('abort', hangUp);
      try {
        return await question(admin, server);
      } finally {
        signal?.removeEventListener('abort', hangUp);
        await admin.close();
      }
    }),
  );
  signal?.throwIfAborted();
  const answered = answers.filter((answer) => answer.status === 'fulfilled');
  if (answered.length > 0) return answered.flatMap((answer) => answer.value);
  const names = servers.map(formatAddress).join(', ');
  throw new ConnectionError(
    'connect-failed',
    `no job server answers at ${names}; start nodepool-builder or gearmand there`,
    { cause: answers.find((answer) => answer.status === 'rejected')?.reason },
  );
}

/**
 * Refuses a job for a function that no builder offers: it would wait in the queue forever, without an error.
 *
 * @throws CommandError `not-found`
 */
export async function requireOffer(servers: readonly ServerAddress[], wanted: string): Promise<void> {
  const functions = await askServers(servers, (admin) => admin.status());
  const offered = functions.filter(({ availableWorkers }) => availableWorkers > 0).map(({ name }) => name);
  if (offered.includes(wanted)) return;
  const verb = verbOf(wanted);
  const subjects = new Set(offered.filter((name) => name.startsWith(`${verb}:`)).map(subjectOf));
  const remedy =
    subjects.size > 0
      ? choiceOf([...subjects].toSorted().slice(0, 10))
      : `nothing is offered for ${verb}; start nodepool-builder, or see its log`;
  throw new CommandError(`no builder offers ${wanted}; ${remedy}`, { exitReason: 'not-found' });
}
