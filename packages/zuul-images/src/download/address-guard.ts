import type { LookupAddress, LookupOptions } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { ImageError } from '@nodepool-builder/image-builder';
import { nameOf } from './artifact-url.ts';

/** Scope of an address: this host, its link, or its site. */
export type Network = 'loopback' | 'link-local' | 'private';

/** Special-purpose addresses by IANA's registries. On Linux 0.0.0.0 and :: reach this host. */
const NETWORKS: Readonly<Record<Network, string>> = {
  loopback: '127.0.0.0/8 0.0.0.0/8 ::1/128 ::/128',
  'link-local': '169.254.0.0/16 fe80::/10',
  private:
    '10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 192.0.0.0/24 198.18.0.0/15 224.0.0.0/4 240.0.0.0/4 ' +
    'fc00::/7 fec0::/10 64:ff9b:1::/48 ff00::/8',
};

const LISTS: readonly (readonly [network: Network, list: BlockList])[] = (
  Object.keys(NETWORKS) as Network[]
).map((network) => [network, listOf(NETWORKS[network].split(' '))]);

/** Groups of an IPv6 address before the last two, which hold an IPv4 address: mapped, translated, compatible, NAT64. */
const EMBEDDING: ReadonlySet<string> = new Set([
  '0,0,0,0,0,ffff',
  '0,0,0,0,ffff,0',
  '0,0,0,0,0,0',
  '64,ff9b,0,0,0,0',
]);

/** The network of an address; undefined for one of the internet. */
export function networkOf(address: string): Network | undefined {
  const [plain = ''] = address.split('%'); // behind it stands the zone of an IPv6 address
  const family = isIP(plain) === 4 ? 'ipv4' : 'ipv6';
  const found = LISTS.find(([, list]) => list.check(plain, family))?.[0];
  const embedded = found === undefined && family === 'ipv6' ? embeddedAddress(plain) : undefined;
  return embedded === undefined ? found : networkOf(embedded);
}

/** Settings of an {@link AddressGuard}. */
export interface AddressGuardOptions {
  /** URLs that the administrator has configured: their hosts are allowed, and so are all hosts of their networks. */
  readonly configuredUrls: readonly string[];
  /** Names or addresses of further hosts that are allowed. */
  readonly allowedHosts?: readonly string[];
  /** Replaces the resolver of the system in tests. */
  readonly resolve?: (host: string, options: LookupOptions) => Promise<readonly LookupAddress[]>;
}

/**
 * Keeps a job's or a server's URL from leading this process to services of its own host, link or site. Addresses are
 * checked when a connection is made: a name that had another address before gains nothing.
 */
export class AddressGuard {
  readonly #options: AddressGuardOptions;
  readonly #hosts: ReadonlySet<string>;
  readonly #resolve: NonNullable<AddressGuardOptions['resolve']>;
  #networks: Promise<ReadonlySet<Network>> | undefined;

  constructor(options: AddressGuardOptions) {
    const { configuredUrls, allowedHosts = [], resolve = resolveAll } = options;
    this.#options = options;
    this.#resolve = resolve;
    this.#hosts = new Set([...configuredUrls.map(hostOf), ...allowedHosts.map((host) => host.toLowerCase())]);
  }

  /**
   * Checks an address in a URL; a name is checked by {@link lookup}.
   *
   * @throws ImageError `artifact-refused`
   */
  async check(url: URL): Promise<void> {
    const host = hostOf(url.href);
    if (isIP(host) === 0 || (await this.#isAllowed(host, host))) return;
    throw refused(nameOf(url), host);
  }

  /** For the option `lookup` of requests: resolves a name and leaves out addresses that are not allowed. */
  readonly lookup: LookupFunction = (host, options, callback) => {
    void this.#answer(host, options, callback);
  };

  async #answer(
    host: string,
    options: LookupOptions,
    callback: Parameters<LookupFunction>[2],
  ): Promise<void> {
    const found = await this.#lookUp(host, options).catch((error: NodeJS.ErrnoException) => error);
    if (found instanceof Error) callback(found, '', 0);
    else if (options.all === true) callback(null, [...found]);
    else callback(null, found[0]?.address ?? '', found[0]?.family);
  }

  async #lookUp(host: string, options: LookupOptions): Promise<readonly LookupAddress[]> {
    const addresses = await this.#resolve(host, options);
    const allowed: LookupAddress[] = [];
    for (const found of addresses) {
      if (await this.#isAllowed(host.toLowerCase(), found.address)) allowed.push(found);
    }
    const [first] = addresses;
    if (allowed.length === 0 && first !== undefined) throw refused(host, first.address);
    return allowed;
  }

  async #isAllowed(host: string, address: string): Promise<boolean> {
    const network = networkOf(address);
    if (network === undefined || this.#hosts.has(host) || this.#hosts.has(address)) return true;
    this.#networks ??= this.#configuredNetworks();
    return (await this.#networks).has(network);
  }

  /** Networks of the configured URLs. A name that cannot be resolved adds none. */
  async #configuredNetworks(): Promise<ReadonlySet<Network>> {
    const networks = this.#options.configuredUrls.map(async (url) => {
      const host = hostOf(url);
      if (isIP(host) !== 0) return [networkOf(host)];
      const addresses = await this.#resolve(host, {}).catch(() => []);
      return addresses.map(({ address }) => networkOf(address));
    });
    return new Set((await Promise.all(networks)).flat().filter((network) => network !== undefined));
  }
}

async function resolveAll(host: string, options: LookupOptions): Promise<readonly LookupAddress[]> {
  return await lookup(host, { ...options, all: true });
}

/** A host as a resolver wants it: without the brackets of an IPv6 address. URL has written out any form of IPv4. */
function hostOf(url: string): string {
  return (URL.parse(url)?.hostname ?? '').replace(/^\[|\]$/g, '').toLowerCase();
}

function listOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', prefix] = network.split('/');
    list.addSubnet(address, Number(prefix), address.includes(':') ? 'ipv6' : 'ipv4');
  }
  return list;
}

/** The IPv4 address that an IPv6 address leads to; undefined if it leads to none. */
function embeddedAddress(address: string): string | undefined {
  const groups = groupsOf(address);
  if (groups[0] === '2002') return ipv4Of(groups.slice(1, 3)); // 6to4
  return EMBEDDING.has(groups.slice(0, 6).join(',')) ? ipv4Of(groups.slice(6)) : undefined;
}

/** All eight groups; URL brings any notation into one form, in which `::` stands for the longest run of zeros. */
function groupsOf(address: string): readonly string[] {
  const [head = '', tail = ''] = hostOf(`http://[${address}]/`).split('::');
  const [first, last] = [head, tail].map((part) => part.split(':').filter((group) => group !== ''));
  const zeros = 8 - (first?.length ?? 0) - (last?.length ?? 0);
  return [...(first ?? []), ...Array<string>(zeros).fill('0'), ...(last ?? [])];
}

function ipv4Of(groups: readonly string[]): string {
  return groups
    .map((group) => Number.parseInt(group, 16))
    .flatMap((number) => [number >> 8, number & 0xff])
    .join('.');
}

function refused(what: string, address: string): ImageError {
  return new ImageError(
    'artifact-refused',
    `${what} cannot be fetched: ${address} is a ${networkOf(address)} address; if an artifact may come from there, ` +
      'add the host to allowed-hosts',
  );
}
