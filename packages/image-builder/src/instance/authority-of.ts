import type { InstanceAddress } from './instance-provider.ts';

/** An address as URLs and people write it (RFC 3986, section 3.2): of IPv6 in brackets. */
export function authorityOf({ host, port }: InstanceAddress): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}
