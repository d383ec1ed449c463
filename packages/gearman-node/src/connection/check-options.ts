import {
  checkNames,
  checkPort,
  checkRange,
  checkText,
  MAX_TIMER_DELAY,
  type OptionNames,
  refuse,
} from '../argument-checks.ts';
import type { BackoffOptions } from './backoff.ts';
import type { ServerAddress } from './server-address.ts';

/** Minimum of `maxPacketSize`, which fits the header and a handle of the maximum length. */
const MIN_PACKET_SIZE = 76;

/** Options common to clients and workers. */
interface PeerOptions {
  readonly servers: readonly ServerAddress[];
  readonly clientId?: string | undefined;
  readonly timeout?: number | undefined;
  readonly maxPacketSize?: number | undefined;
  readonly reconnect?: BackoffOptions | undefined;
}

const BACKOFF: OptionNames<BackoffOptions> = { minDelay: true, maxDelay: true };

const ADDRESS: OptionNames<ServerAddress> = { host: true, port: true, tls: true };

/** @throws GearmanError `invalid-argument` */
export function checkPeerOptions({
  servers,
  clientId,
  timeout,
  maxPacketSize,
  reconnect,
}: PeerOptions): void {
  if (!Array.isArray(servers) || servers.length === 0) {
    refuse('list of job servers', servers, 'give at least one');
  }
  for (const server of servers) checkServer(server);
  if (clientId !== undefined) checkText('clientId', clientId);
  checkRange('timeout', timeout, 1, MAX_TIMER_DELAY);
  checkPacketLimit(maxPacketSize);
  if (reconnect !== undefined) checkNames('reconnect', reconnect, BACKOFF);
}

/** @throws GearmanError `invalid-argument` */
export function checkPacketLimit(maxPacketSize: number | undefined): void {
  checkRange('maxPacketSize', maxPacketSize, MIN_PACKET_SIZE, Number.POSITIVE_INFINITY);
}

/** @throws GearmanError `invalid-argument` for an invalid address */
export function checkServer(server: ServerAddress): void {
  checkNames('the address of a job server', server, ADDRESS);
  const { host, port = 0, tls } = server;
  if (typeof host !== 'string' || host === '')
    refuse('host of a job server', host, 'give a name or an address');
  checkPort('port of a job server', port);
  if (tls !== undefined && typeof tls !== 'function' && (typeof tls !== 'object' || tls === null)) {
    refuse('tls of a job server', tls, 'give options of node:tls, or leave it out for plain text');
  }
}
