import { Admin, ConnectionError, formatAddress, type ServerAddress } from '@nodepool-builder/gearman-node';

/** How long a job server may take for an answer, in milliseconds. */
const TIMEOUT = 10_000;

/**
 * Asks every job server, and puts the answers together. A server that does not answer is left out.
 *
 * @param timeout milliseconds that each of them may take
 * @throws ConnectionError `connect-failed` if none of them answers
 * @throws the signal's reason
 */
export async function askServers<T>(
  servers: readonly ServerAddress[],
  question: (admin: Admin) => Promise<T[]>,
  signal?: AbortSignal,
  timeout: number = TIMEOUT,
): Promise<T[]> {
  const answers = await Promise.allSettled(servers.map((server) => ask(server, question, signal, timeout)));
  signal?.throwIfAborted();
  const answered = answers.filter((answer) => answer.status === 'fulfilled');
  if (answered.length === 0) {
    const names = servers.map(formatAddress).join(', ');
    throw new ConnectionError(
      'connect-failed',
      `no job server answers at ${names}; start nodepool-builder or gearmand there`,
      { cause: answers.find((answer) => answer.status === 'rejected')?.reason },
    );
  }
  return answered.flatMap((answer) => answer.value);
}

/** Whether any job server knows of a builder that offers a function. Throws as {@link askServers} does. */
export async function isOffered(
  servers: readonly ServerAddress[],
  functionName: string,
  signal?: AbortSignal,
): Promise<boolean> {
  const functions = await askServers(servers, (admin) => admin.status(), signal);
  return functions.some(({ name, availableWorkers }) => name === functionName && availableWorkers > 0);
}

async function ask<T>(
  server: ServerAddress,
  question: (admin: Admin) => Promise<T[]>,
  signal: AbortSignal | undefined,
  timeout: number,
): Promise<T[]> {
  signal?.throwIfAborted();
  const admin = new Admin(server, { timeout });
  const hangUp = (): void => void admin.close();
  signal?.addEventListener('abort', hangUp);
  try {
    return await question(admin);
  } finally {
    signal?.removeEventListener('abort', hangUp);
    await admin.close();
  }
}
