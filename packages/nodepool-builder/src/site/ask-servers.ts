import { stat } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import {
  Admin,
  ConnectionError,
  formatAddress,
  type ServerAddress,
} from '@nodepool-builder/gearman-node/admin';
import { subjectOf, verbOf } from '../protocol/functions.ts';
import { CommandError, choiceOf } from '../terms/command-error.ts';

/** Timeout of a job server's reply, in milliseconds. */
const TIMEOUT = 10_000;

/**
 * Queries all job servers concurrently and concatenates their replies. A server that does not reply is left out.
 *
 * @param timeout for each server, in milliseconds
 * @throws CommandError `refused` if TLS fails; ConnectionError `connect-failed` if no server replies
 * @throws the signal's reason
 */
export async function askServers<T>(
  servers: readonly ServerAddress[],
  question: (admin: Admin, server: ServerAddress) => Promise<T[]>,
  signal?: AbortSignal,
  timeout: number = TIMEOUT,
): Promise<T[]> {
  const replies = await Promise.allSettled(
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
  const received = replies.filter((reply) => reply.status === 'fulfilled');
  if (received.length > 0) return received.flatMap((reply) => reply.value);
  throw failureOf(
    servers,
    replies.map((reply) => (reply.status === 'rejected' ? reply.reason : undefined)),
  );
}

/** @param reasons the error of each server's query */
function failureOf(servers: readonly ServerAddress[], reasons: readonly unknown[]): Error {
  const denials = servers.flatMap((server, index) => denial(server, reasons[index]) ?? []);
  const [cause] = reasons;
  if (denials.length > 0) {
    const remedy = 'correct host, port and ssl- keys of gearman-servers, or the certificate of the server';
    return new CommandError(`${denials.join('; ')}; ${remedy}`, 'refused', { cause });
  }
  const names = servers.map(formatAddress).join(', ');
  const silent = servers.filter((_, index) => Object(reasons[index]).code === 'server-silent');
  const others = reasons.map(causeOf).filter(({ code }) => code !== undefined && code !== 'ECONNREFUSED');
  const details = [
    ...silent.map((server) => `${formatAddress(server)} accepts connections, but does not reply`),
    ...others.map(({ message }) => message),
  ];
  const why = details.length > 0 ? `: ${details.join('; ')}` : '';
  const remedy = silent.length > 0 ? 'restart it if it hangs' : 'start nodepool-builder or gearmand there';
  return new ConnectionError('connect-failed', `no job server responds at ${names}${why}; ${remedy}`, {
    cause,
  });
}

/** Describes why a server is running but accepts no command; undefined if it does not respond. */
function denial(server: ServerAddress, reason: unknown): string | undefined {
  const name = `job server ${formatAddress(server)}`;
  const { code, syscall, reason: alert, message = '' } = causeOf(reason);
  if (server.tls !== undefined && code !== undefined && syscall === undefined) {
    return `TLS with ${name} failed: ${alert ?? message.replace(/[;\n].*/s, '')}`;
  }
  const isClosed = code === undefined && Object(reason).code === 'connection-lost';
  if (!isClosed) return undefined;
  const why =
    server.tls === undefined ? 'it expects TLS, or is not a job server' : 'it may not trust ssl-cert';
  return `${name} closed the connection; ${why}`;
}

/** The error of the socket. */
function causeOf(reason: unknown): {
  readonly code?: string;
  readonly syscall?: string;
  /** OpenSSL's description. */
  readonly reason?: string;
  readonly message?: string;
} {
  return Object(Object(reason).cause);
}

/** Time within which builders reload a changed file, and the pause between two checks, in milliseconds. */
const RELOAD_TIME = 10_000;
const PAUSE = 250;

/**
 * Waits while builders may still load a new disk image.
 *
 * @param file configuration
 * @throws CommandError `not-found` if no builder offers to build it
 */
export async function requireBuilderOf(
  diskimage: string,
  servers: readonly ServerAddress[],
  file: string,
): Promise<void> {
  const names = ['image-build', 'image-build-paused'].map((verb) => `${verb}:${diskimage}`);
  const { mtimeMs } = await stat(file);
  for (;;) {
    const functions = await askServers(servers, (admin) => admin.status());
    if (functions.some(({ name, availableWorkers }) => availableWorkers > 0 && names.includes(name))) return;
    // A time in the distant future means that the clock was set back.
    if (Math.abs(Date.now() - mtimeMs) > RELOAD_TIME) break;
    await delay(PAUSE);
  }
  const remedy = "start a builder that has it in diskimages, or check the builders' logs";
  throw new CommandError(`no builder offers ${names[0]}; ${remedy}`, 'not-found');
}

/**
 * Rejects a job for a function that no builder offers, because it would wait in the queue forever, without an error.
 *
 * @throws CommandError `not-found`; `refused` if the disk image is paused
 */
export async function requireOffer(servers: readonly ServerAddress[], wanted: string): Promise<void> {
  const functions = await askServers(servers, (admin) => admin.status());
  const offered = functions.filter(({ availableWorkers }) => availableWorkers > 0).map(({ name }) => name);
  if (offered.includes(wanted)) return;
  const [, diskimage] = /^image-build:(.+)/.exec(wanted) ?? [];
  if (diskimage !== undefined && offered.includes(`image-build-paused:${diskimage}`)) {
    const reason = `disk image "${diskimage}" is paused by the configuration of its builders`;
    const remedy = 'remove "pause: true" from its entry, or use "image-unpause" and "rebuild"';
    throw new CommandError(`${reason}; ${remedy}`, 'refused');
  }
  const verb = verbOf(wanted);
  const subjects = new Set(offered.filter((name) => name.startsWith(`${verb}:`)).map(subjectOf));
  const remedy =
    subjects.size > 0
      ? choiceOf([...subjects].toSorted().slice(0, 10))
      : `no builder offers ${verb}; start nodepool-builder, or check its log`;
  throw new CommandError(`no builder offers ${wanted}; ${remedy}`, 'not-found');
}
