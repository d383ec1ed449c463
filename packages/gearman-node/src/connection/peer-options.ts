import {
  checkNames,
  checkPort,
  checkRange,
  checkText,
  MAX_TIMER_DELAY,
  type OptionNames,
  refuse,
} from '../argument-checks.ts';
import type { Logger } from '../logger.ts';
import type { BackoffOptions } from './paced-server.ts';
import type { ServerAddress } from './server-address.ts';

/** Options of clients and workers. */
export interface PeerOptions {
  /** At least one. */
  readonly servers: readonly ServerAddress[];
  /** Name of this peer in the admin command `workers`. Default: none. */
  readonly clientId?: string | undefined;
  readonly logger?: Logger | undefined;
  /**
   * Timeout in milliseconds for connecting, and for the reply to a request, after which the connection is closed. It
   * does not limit the run time of jobs. A worker's timeout of a request grows with each thousand registered functions,
   * up to 16 times. Default 30,000.
   */
  readonly timeout?: number | undefined;
  /**
   * The pauses between attempts to connect to one server. They grow until the server replies to a request. Default:
   * from 100 to 5,000 ms.
   */
  readonly reconnect?: BackoffOptions | undefined;
  /**
   * Maximum size of a packet in bytes. A job with a larger payload or result rejects with `packet-too-large` in a
   * client, and ends in an exception in a worker; other jobs are not affected. Default 64 MiB.
   */
  readonly maxPacketSize?: number | undefined;
}

/** Minimum of `maxPacketSize`, which fits the header and a handle of the maximum length. */
const MIN_PACKET_SIZE = 76;

const OPTIONS: OptionNames<PeerOptions> = {
  servers: true,
  clientId: true,
  logger: true,
  timeout: true,
  reconnect: true,
  maxPacketSize: true,
};

const BACKOFF: OptionNames<BackoffOptions> = { minDelay: true, maxDelay: true };

const ADDRESS: OptionNames<ServerAddress> = { host: true, port: true, tls: true };

/**
 * @param more names of the options that only this type of peer has
 * @throws GearmanError `invalid-argument`
 */
export function checkPeerOptions<Options extends PeerOptions>(
  what: string,
  options: Options,
  more: OptionNames<Omit<Options, keyof PeerOptions>>,
): void {
  checkNames<object>(what, options, { ...OPTIONS, ...more });
  const { servers, clientId, timeout, maxPacketSize, reconnect } = options;
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
