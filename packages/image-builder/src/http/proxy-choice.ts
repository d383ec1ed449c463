import { BlockList, isIP } from 'node:net';
import type { Environment } from '../process/inherited-environment.ts';

/** A request cannot be sent, or a proxy rejects it, until a setting is corrected. No message contains a secret. */
export class HttpSettingsError extends Error {
  override readonly name = 'HttpSettingsError';
}

/** Destination of a request. */
export interface Destination {
  readonly isTls: boolean;
  /** Name or address, without brackets. */
  readonly host: string;
  readonly port: number;
}

/**
 * Chooses the proxy for a request like python3-requests: `https_proxy` or `http_proxy`, else `all_proxy`, unless
 * `no_proxy` names the host.
 *
 * @returns undefined for a direct connection
 * @throws HttpSettingsError
 */
export function proxyFor(destination: Destination, environment: Environment): URL | undefined {
  const found = [destination.isTls ? 'https_proxy' : 'http_proxy', 'all_proxy'].find((name) =>
    variable(environment, name),
  );
  if (found === undefined) return undefined;
  const noProxy = environment.no_proxy || environment.NO_PROXY || '';
  if (isExcluded(destination, noProxy)) return undefined;
  return proxyUrl(variable(environment, found) ?? '', found);
}

/** Returns the value of a variable. The spelling in lower case counts, even if it is empty. */
function variable(environment: Environment, name: string): string | undefined {
  return environment[name] ?? environment[name.toUpperCase()];
}

/** Parses the URL of a proxy, which may have no scheme. */
function proxyUrl(text: string, name: string): URL {
  const url = URL.parse(/^[a-z][a-z\d+.-]*:\/\//i.test(text) ? text : `http://${text.replace(/^\/\//, '')}`);
  if (url !== null && url.hostname !== '' && /^https?:$/.test(url.protocol)) {
    // A percent sign that encodes nothing stands for itself.
    for (const part of ['username', 'password'] as const)
      url[part] = url[part].replaceAll(/%(?![\da-f]{2})/gi, '%25');
    return url;
  }
  const isSocks = /^socks/i.test(text);
  const reason = isSocks
    ? 'a SOCKS proxy, which is not supported'
    : 'no proxy, because its value is not a proxy URL';
  throw new HttpSettingsError(
    `${name} names ${reason}; set it to http://proxy.example.com:3128, or unset it`,
  );
}

/**
 * Returns whether `no_proxy` names the host: by name, suffix of the name, address or network, each optionally with the
 * port.
 */
function isExcluded({ host: named, port }: Destination, noProxy: string): boolean {
  const host = named.toLowerCase();
  const names = [host, `${host}:${port}`];
  return noProxy
    .toLowerCase()
    .split(',')
    .map((entry) => entry.trim())
    .some((entry) => {
      if (entry === '*' || entry === '') return entry === '*';
      const end = entry.replace(/^\*?\./, '');
      if (host === end || host.endsWith(`.${end}`)) return true;
      // requests accepts any suffix of a name, even within a word.
      return isIP(host) === 0 ? names.some((name) => name.endsWith(entry)) : coversAddress(entry, host, port);
    });
}

/** Returns whether an entry is the address, or a network such as `10.0.0.0/8`. An IPv6 address may have brackets. */
function coversAddress(entry: string, host: string, port: number): boolean {
  const withoutPort = entry.replace(/^(\[.*\]|[\d.]+):(\d+)$/, (whole, address: string, named: string) =>
    Number(named) === port ? address : whole,
  );
  const [address = '', prefix] = withoutPort.replaceAll(/[[\]]/g, '').split('/');
  const family = isIP(address);
  if (family === 0) return false;
  const bits = family === 4 ? 32 : 128;
  const length = prefix === undefined ? bits : Number(prefix);
  if (!/^[1-9]\d*$/.test(prefix ?? '1') || length > bits) return false;
  const list = new BlockList();
  list.addSubnet(address, length, family === 4 ? 'ipv4' : 'ipv6');
  return list.check(host, isIP(host) === 4 ? 'ipv4' : 'ipv6');
}
