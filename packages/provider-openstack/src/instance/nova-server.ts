import type { InstanceState } from '@nodepool-builder/image-builder';
import { list, record, text } from '../session/answer-shape.ts';

/** One address of a server. */
export interface ServerAddress {
  readonly address: string;
  readonly version: 4 | 6;
  readonly kind: 'fixed' | 'floating';
}

/** A server as Nova shows it. */
export interface NovaServer {
  readonly id: string;
  /** `BUILD`, `ACTIVE`, `SHUTOFF`, `ERROR` and so on. */
  readonly status: string;
  /** What Nova is doing with it; null for nothing, and absent where the cloud does not tell. */
  readonly taskState?: string | null;
  /** Why it failed; empty if Nova does not say. */
  readonly fault: string;
  /** What Nova was told to reach it by. */
  readonly access: readonly ServerAddress[];
  readonly addresses: readonly ServerAddress[];
  readonly keyName?: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** What the statuses mean; all others are of a server that is of no use to a build. */
const STATES: Readonly<Record<string, InstanceState>> = {
  BUILD: 'starting',
  ACTIVE: 'running',
  REBOOT: 'running',
  HARD_REBOOT: 'running',
  SHUTOFF: 'stopped',
};

/** Deleted already, and shown for a while yet. */
const GONE: readonly string[] = ['DELETED', 'SOFT_DELETED'];

export function stateOf(server: NovaServer): InstanceState {
  return STATES[server.status] ?? 'failed';
}

export function isGone(server: NovaServer): boolean {
  return GONE.includes(server.status);
}

/**
 * Checks and reads a server in an answer.
 *
 * @throws Error that says what is wrong with it.
 */
export function readServer(value: unknown): NovaServer {
  const server = record(value, 'the server');
  const { 'OS-EXT-STS:task_state': taskState, fault, accessIPv4, accessIPv6, key_name: keyName } = server;
  return {
    id: text(server.id, 'id'),
    status: text(server.status, 'status'),
    ...((typeof taskState === 'string' || taskState === null) && { taskState }),
    fault: fault === undefined ? '' : text(record(fault, 'fault').message, 'fault.message'),
    access: [...accessAddress(accessIPv4, 4), ...accessAddress(accessIPv6, 6)],
    addresses: Object.values(record(server.addresses ?? {}, 'addresses')).flatMap((network) =>
      list(network, 'addresses.*').map(readAddress),
    ),
    ...(typeof keyName === 'string' && { keyName }),
    metadata: record(server.metadata ?? {}, 'metadata'),
  };
}

function accessAddress(address: unknown, version: 4 | 6): ServerAddress[] {
  return typeof address === 'string' && address !== '' ? [{ address, version, kind: 'fixed' }] : [];
}

function readAddress(value: unknown): ServerAddress {
  const { addr, version, 'OS-EXT-IPS:type': kind } = record(value, 'addresses.*[]');
  return {
    address: text(addr, 'addresses.*[].addr'),
    version: version === 6 ? 6 : 4,
    kind: kind === 'floating' ? 'floating' : 'fixed',
  };
}

/** A flavor as Nova shows it. */
export interface Flavor {
  readonly id: string;
  readonly name: string;
  /** MiB. */
  readonly ram: number;
}

export function readFlavor(value: unknown): Flavor {
  const { id, name, ram } = record(value, 'the flavor');
  if (typeof ram !== 'number') throw new Error('ram is not a number');
  return { id: text(id, 'id'), name: text(name, 'name'), ram };
}

/** A key pair of the user. */
export interface KeyPair {
  readonly name: string;
  readonly publicKey: string;
}

export function readKeyPair(value: unknown): KeyPair {
  const { name, public_key: publicKey } = record(record(value, 'the entry').keypair, 'keypair');
  return { name: text(name, 'name'), publicKey: text(publicKey, 'public_key') };
}
