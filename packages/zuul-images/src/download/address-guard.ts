import type { LookupAddress, LookupOptions } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { ImageError } from '@nodepool-builder/image-builder';
import { nameOf } from './artifact-url.ts';

/** Special-purpose addresses from IANA's registries. On Linux 0.0.0.0 and :: reach this host. */
const NETWORKS = {
  loopback: '127.0.0.0/8 0.0.0.0/8 ::1/128 ::/128',
  'link-local': '169.254.0.0/16 fe80::/10',
  private:
    '10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 192.0.0.0/24 198.18.0.0/15 224.0.0.0/4 240.0.0.0/4 ' +
    'fc00::/7 fec0::/10 64:ff9b:1::/48 ff00::/8',
} as const;

/** Scope of an address: this host, its link, or its site. */
export type Network = keyof typeof NETWORKS;

/** Prefixes of IPv6 addresses whose last 32 bits are an IPv4 address: compatible, translated, NAT64. */
const EMBEDDING = ['::', '::ffff:0:', '64:ff9b::'] as const;

const LISTS = Object.entries(NETWORKS).map(
  ([network, subnets]) => [network as Network, listOf(subnets.split(' '))] as const,
);

/** Returns the network of an address; undefined for a public internet address. */
export function networkOf(address: string): Network | undefined {
  const [plain = ''] = address.split('%'); // the zone of an IPv6 address follows
  return LISTS.find(([, list]) => list.check(plain, isIP(plain) === 4 ? 'ipv4' : 'ipv6'))?.[0];
}

/**
 * Makes a list of the subnets, and of the IPv6 addresses that lead to their IPv4 addresses. BlockList itself finds
 * mapped ones.
 */
function listOf(subnets: readonly string[]): BlockList {
  const list = new BlockList();
  for (const subnet of subnets) {
    const [address = '', length] = subnet.split('/');
    const prefix = Number(length);
    if (address.includes(':')) {
      list.addSubnet(address, prefix, 'ipv6');
      continue;
    }
    list.addSubnet(address, prefix, 'ipv4');
    for (const embedding of EMBEDDING) list.addSubnet(embedding + address, 96 + prefix, 'ipv6');
    const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
    const groups = [a * 256 + b, c * 256 + d].map((group) => group.toString(16));
    list.addSubnet(`2002:${groups.join(':')}::`, 16 + prefix, 'ipv6'); // 6to4
  }
  return list;
}

/** Settings of an {@link AddressGuard}. */
export interface AddressGuardOptions {
  /** URLs of the configuration. Their hosts are allowed, and so are all hosts of their networks. */
  readonly configuredUrls: readonly string[];
  /** Names or addresses of additional allowed hosts. */
  readonly allowedHosts?: readonly string[];
  /** Replaces the system's resolver in tests. */
  readonly resolve?: (host: string, options: LookupOptions) => Promise<readonly LookupAddress[]>;
}

/**
 * Prevents a URL of a job or a server from leading this process to services of its own host, link or site. Addresses
 * are checked when a connection is made, so that a name cannot change its address after the check.
 */
export class AddressGuard {
  readonly #configuredUrls: readonly string[];
  readonly #hosts: ReadonlySet<string>;
  readonly #resolve: NonNullable<AddressGuardOptions['resolve']>;
  #networks: Promise<ReadonlySet<Network | undefined>> | undefined;

  constructor({ configuredUrls, allowedHosts = [], resolve = resolveAll }: AddressGuardOptions) {
    this.#configuredUrls = configuredUrls;
    this.#resolve = resolve;
    this.#hosts = new Set([...configuredUrls.map(hostOf), ...allowedHosts.map((host) => host.toLowerCase())]);
  }

  /**
   * Checks an address in a URL. {@link lookup} checks names, unless a proxy resolves them. Then they are checked here,
   * because the proxy may know names that this host does not know.
   *
   * @throws ImageError `artifact-refused`
   */
  async check(url: URL, isProxied = false): Promise<void> {
    const host = hostOf(url.href);
    if (isIP(host) !== 0 && !(await this.#isAllowed(host, host))) throw refused(nameOf(url), host);
    if (isIP(host) !== 0 || !isProxied) return;
    await this.#lookUp(host, {}).catch((error: unknown) => {
      if (error instanceof ImageError) throw error;
    });
  }

  /** Option `lookup` of requests. Resolves a name, without the addresses that are not allowed. */
  readonly lookup: LookupFunction = (host, options, callback) => {
    void this.#callBack(host, options, callback);
  };

  async #callBack(
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
  async #configuredNetworks(): Promise<ReadonlySet<Network | undefined>> {
    const networks = this.#configuredUrls.map(async (url) => {
      const host = hostOf(url);
      if (isIP(host) !== 0) return [networkOf(host)];
      const addresses = await this.#resolve(host, {}).catch(() => []);
      return addresses.map(({ address }) => networkOf(address));
    });
    return new Set((await Promise.all(networks)).flat());
  }
}

async function resolveAll(host: string, options: LookupOptions): Promise<readonly LookupAddress[]> {
  return await lookup(host, { ...options, all: true });
}

/**
 * Returns the host of a URL for a resolver, without the brackets of an IPv6 address. URL normalises all forms of IPv4.
 */
function hostOf(url: string): string {
  return (URL.parse(url)?.hostname ?? '').replace(/^\[|\]$/g, '').toLowerCase();
}

function refused(what: string, address: string): ImageError {
  return new ImageError(
    'artifact-refused',
    `${what} cannot be fetched: ${address} is a ${networkOf(address)} address; if an artifact may come from there, ` +
      'add the host to allowed-hosts',
  );
}
