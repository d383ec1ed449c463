import type { NovaServer, ServerAddress } from './nova-server.ts';

/** The address that a server is reached by: what Nova was told, else a floating IP, else one of a network. */
export function chooseAddress(
  server: Pick<NovaServer, 'access' | 'addresses'>,
  ipv6Preferred: boolean,
): string | undefined {
  const { access, addresses } = server;
  const [address] = [access, only('floating', addresses), only('fixed', addresses)].flatMap((group) =>
    inOrder(group, ipv6Preferred),
  );
  return address?.address;
}

/** Whether a server is reached from outside of its networks. */
export function isPublic({ access, addresses }: Pick<NovaServer, 'access' | 'addresses'>): boolean {
  return access.length > 0 || only('floating', addresses).length > 0;
}

function only(kind: ServerAddress['kind'], addresses: readonly ServerAddress[]): ServerAddress[] {
  return addresses.filter((address) => address.kind === kind);
}

function inOrder(addresses: readonly ServerAddress[], ipv6Preferred: boolean): ServerAddress[] {
  const sign = ipv6Preferred ? -1 : 1;
  return addresses.toSorted((one, other) => sign * (one.version - other.version));
}
