import { type Command, InvalidArgumentError } from 'commander';
import type { Configuration } from '../configuration/configuration.ts';
import { usageError } from '../terms/command-error.ts';
import { portNumber } from '../terms/option-values.ts';
import type { EventMetrics } from './event-metrics.ts';

/** Address of the status page. */
export interface WebAddress {
  readonly host: string;
  /** Port; with 0, the system chooses one. */
  readonly port: number;
}

/** Options of the status page, for commands that run until a signal stops them. */
export interface WebOptions {
  /** `[host:]port`, see {@link webAddress}. */
  readonly web?: string;
  /** File with the token that allows actions. */
  readonly webTokenFile?: string;
  /** Header in which a proxy names the user that it has authenticated. */
  readonly webTrustedHeader?: string;
  /** IP addresses of the proxies whose header counts, separated by commas. */
  readonly webTrustedProxy?: string;
  /** Address of the page in the browser, if a proxy serves it under another address. */
  readonly webUrl?: string;
}

/** Adds `--web` and the related options to a command. */
export function addWebOptions(command: Command): void {
  command
    .option(
      '--web <[host:]port>',
      'address on which to serve the status page, the API and the metrics (default host: 127.0.0.1)',
      (text) => formatWebAddress(webAddress(text)),
    )
    .option(
      '--web-token-file <file>',
      'file with the token that permits clients and logins to rebuild, cancel, roll back and delete',
    )
    .option(
      '--web-trusted-header <name>',
      'header in which the proxies of --web-trusted-proxy name a user who may do the same',
    )
    .option(
      '--web-trusted-proxy <ips>',
      'IP addresses of the proxies that authenticate users, separated by commas',
    )
    .option('--web-url <url>', "the page's address in the browser, if a proxy serves it", webUrl);
}

/** @throws CommandError `usage` if an option has no effect without `--web` */
export function checkWebOptions({ web, ...options }: WebOptions): void {
  if (web !== undefined || !Object.keys(options).some((key) => key.startsWith('web'))) return;
  throw usageError('an option of the status page has no effect without --web; add --web');
}

/** Opens the metrics of this process, if a page will show them. The start of the process may be the first event. */
export async function openEventMetrics(
  { web }: WebOptions,
  configuration: Configuration,
  runsManager: boolean,
): Promise<EventMetrics | undefined> {
  if (web === undefined) return undefined;
  const { EventMetrics: Metrics } = await import('./event-metrics.ts'); // a builder without the page starts faster
  return new Metrics(configuration, { runsManager });
}

/** Formats an address: `127.0.0.1:8080`, `[::1]:8080`. */
export function formatWebAddress({ host, port }: WebAddress): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Parses `8080`, `0.0.0.0:8080` and `[::1]:8080`. */
export function webAddress(text: string): WebAddress {
  const match = /^(?:\[([\da-fA-F:.]+)\]:|([^:[\]]+):)?(\d+)$/.exec(text);
  if (match === null)
    throw new InvalidArgumentError('It must be a port, or an address and a port: 0.0.0.0:8080.');
  const [, ipv6, host, port = ''] = match;
  return { host: ipv6 ?? host ?? '127.0.0.1', port: portNumber(port) };
}

function webUrl(text: string): string {
  const url = URL.parse(text);
  if (url !== null && /^https?:$/.test(url.protocol) && url.pathname === '/') return url.origin;
  throw new InvalidArgumentError('It must be an address without a path: https://images.example.org.');
}
