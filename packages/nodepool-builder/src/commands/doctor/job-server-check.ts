import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { type ConnectionOptions, connect, type PeerCertificate } from 'node:tls';
import { Admin, ConnectionError, formatAddress, type ServerAddress } from '@nodepool-builder/gearman-node';
import type { CheckResult } from '@nodepool-builder/image-builder';
import { attempt, unlessAborted } from '@nodepool-builder/image-builder/internal';
import type { Configuration } from '../../configuration/configuration.ts';
import { jobServers } from '../../configuration/gearman-server.ts';
import { functionName } from '../../protocol/functions.ts';
import type { Check } from './checks.ts';

/** Time before its expiry at which a certificate should be renewed, in milliseconds. */
const RENEWAL = 14 * 24 * 3_600_000;

/** Returns a check for each job server, or for the one that the daemon would start. */
export function jobServerChecks(configuration: Configuration): readonly Check[] {
  const isEmbedded = configuration['gearman-servers'].length === 0;
  return jobServers(configuration).map((server) => ({
    area: 'job-servers',
    subject: `job server ${formatAddress(server)}`,
    run: (signal) => checkJobServer(server, isEmbedded, configuration, signal),
  }));
}

async function* checkJobServer(
  server: ServerAddress,
  isEmbedded: boolean,
  configuration: Configuration,
  signal: AbortSignal,
): AsyncGenerator<CheckResult> {
  const subject = `job server ${formatAddress(server)}`;
  if (server.tls !== undefined) yield* checkCertificates(subject, server, signal);
  const admin = new Admin(server);
  const hangUp = (): void => void admin.close();
  signal.addEventListener('abort', hangUp);
  try {
    const { value: functions, problem } = await attempt(subject, signal, () => admin.status());
    if (problem !== undefined) {
      const remedy = 'start it, or correct gearman-servers; see its log if it runs';
      yield isEmbedded ? notRunning(subject) : { ...problem, remedy };
      return;
    }
    // Some servers do not report their version.
    const version = await admin.version().catch((error: unknown) => {
      signal.throwIfAborted();
      if (error instanceof ConnectionError) throw error;
      return undefined;
    });
    const available = functions.filter(({ availableWorkers }) => availableWorkers > 0);
    const offered = new Set(available.map(({ name }) => name));
    const tls = server.tls === undefined ? '' : ' over TLS';
    const message = `responds${tls}, version ${version ?? 'unknown'}; functions offered: ${offered.size}`;
    yield { subject, status: 'ok', message };
    yield* checkFunctions(subject, offered, configuration);
  } finally {
    signal.removeEventListener('abort', hangUp);
    await admin.close();
  }
}

/** Without `gearman-servers`, the daemon runs its own job server. */
function notRunning(subject: string): CheckResult {
  const message = 'does not run; the daemon starts it, as gearman-servers is empty';
  return { subject, status: 'ok', message };
}

function* checkFunctions(
  server: string,
  offered: ReadonlySet<string>,
  { diskimages }: Configuration,
): Iterable<CheckResult> {
  const missing = diskimages
    .filter(({ pause, name }) => !pause && !offered.has(functionName('image-build', name)))
    .map(({ name }) => name);
  if (diskimages.length === 0) return;
  const subject = `builders at ${server}`;
  if (missing.length === 0) {
    yield { subject, status: 'ok', message: 'offer builds of all disk images' };
    return;
  }
  const message = `no builder offers ${missing.join(', ')}`;
  const remedy = 'start the daemon of a host that builds them';
  yield { subject, status: 'warning', message, remedy };
}

/** Checks when the certificates of the server and of this client expire. */
async function* checkCertificates(
  server: string,
  address: ServerAddress,
  signal: AbortSignal,
): AsyncGenerator<CheckResult> {
  const options = typeof address.tls === 'function' ? address.tls() : (address.tls ?? {});
  const [own] = [options.cert ?? []].flat();
  if (own !== undefined) {
    yield checkExpiry(`client certificate for ${server}`, new X509Certificate(own).validTo);
  }
  // An invalid certificate is reported by the check of the connection.
  const certificate = await readCertificate(address, options, signal).catch(() => undefined);
  if (certificate?.valid_to !== undefined) {
    yield checkExpiry(`certificate of ${server}`, certificate.valid_to);
  }
}

async function readCertificate(
  { host, port }: ServerAddress,
  options: ConnectionOptions,
  signal: AbortSignal,
): Promise<PeerCertificate> {
  const name = isIP(host) === 0 ? { servername: host } : {};
  const socket = connect({ ...name, ...options, host, port: port ?? 4730 });
  try {
    const connected = Promise.withResolvers<PeerCertificate>();
    socket.on('secureConnect', () => connected.resolve(socket.getPeerCertificate()));
    socket.on('error', connected.reject);
    return await unlessAborted(connected.promise, signal);
  } finally {
    socket.destroy();
  }
}

function checkExpiry(subject: string, validTo: string): CheckResult {
  const left = Date.parse(validTo) - Date.now();
  const message = `is valid until ${new Date(validTo).toISOString()}`;
  if (left > RENEWAL) return { subject, status: 'ok', message };
  const remedy = 'renew it; no restart is needed';
  return { subject, status: left > 0 ? 'warning' : 'problem', message, remedy };
}
