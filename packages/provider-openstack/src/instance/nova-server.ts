import type { InstanceState } from '@nodepool-builder/image-builder';
import { JsonReader } from '@nodepool-builder/image-builder/module-kit';

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

const TEXT = { type: 'string' } as const;

const SERVER_SCHEMA = {
  type: 'object',
  required: ['id', 'status'],
  properties: {
    id: TEXT,
    status: TEXT,
    'OS-EXT-STS:task_state': {},
    fault: { type: 'object', required: ['message'], properties: { message: TEXT } },
    accessIPv4: {},
    accessIPv6: {},
    key_name: {},
    addresses: {
      type: ['object', 'null'],
      additionalProperties: {
        type: 'array',
        items: {
          type: 'object',
          required: ['addr'],
          properties: { addr: TEXT, version: {}, 'OS-EXT-IPS:type': {} },
        },
      },
    },
    metadata: { type: ['object', 'null'] },
  },
} as const;

const SERVER = new JsonReader(SERVER_SCHEMA);

const SHOWN_SERVER = new JsonReader({
  type: 'object',
  required: ['server'],
  properties: { server: SERVER_SCHEMA },
});

/** Reads the answer to `GET /servers/{id}`. */
export function readShownServer(value: unknown): NovaServer {
  return novaServer(SHOWN_SERVER.check(value).server);
}

/**
 * Checks and reads a server in an answer.
 *
 * @throws Error that names the invalid field
 */
export function readServer(value: unknown): NovaServer {
  return novaServer(SERVER.check(value));
}

function novaServer(server: ReturnType<typeof SERVER.check>): NovaServer {
  const { 'OS-EXT-STS:task_state': taskState, fault, accessIPv4, accessIPv6, key_name: keyName } = server;
  return {
    id: server.id,
    status: server.status,
    ...((typeof taskState === 'string' || taskState === null) && { taskState }),
    fault: fault?.message ?? '',
    access: [...accessAddress(accessIPv4, 4), ...accessAddress(accessIPv6, 6)],
    addresses: Object.values(server.addresses ?? {}).flatMap((network) =>
      network.map(
        ({ addr, version, 'OS-EXT-IPS:type': kind }): ServerAddress => ({
          address: addr,
          version: version === 6 ? 6 : 4,
          kind: kind === 'floating' ? 'floating' : 'fixed',
        }),
      ),
    ),
    ...(typeof keyName === 'string' && { keyName }),
    metadata: server.metadata ?? {},
  };
}

function accessAddress(address: unknown, version: 4 | 6): ServerAddress[] {
  return typeof address === 'string' && address !== '' ? [{ address, version, kind: 'fixed' }] : [];
}

/** A flavor as Nova shows it. */
export interface Flavor {
  readonly id: string;
  readonly name: string;
  /** MiB. */
  readonly ram: number;
}

const FLAVOR = new JsonReader({
  type: 'object',
  required: ['id', 'name', 'ram'],
  properties: { id: TEXT, name: TEXT, ram: { type: 'number' } },
});

export function readFlavor(value: unknown): Flavor {
  const { id, name, ram } = FLAVOR.check(value);
  return { id, name, ram };
}

/** A key pair of the user. */
export interface KeyPair {
  readonly name: string;
  readonly publicKey: string;
}

const KEY_PAIRS = new JsonReader({
  type: 'object',
  required: ['keypairs'],
  properties: {
    keypairs: {
      type: 'array',
      items: {
        type: 'object',
        required: ['keypair'],
        properties: {
          keypair: {
            type: 'object',
            required: ['name', 'public_key'],
            properties: { name: TEXT, public_key: TEXT },
          },
        },
      },
    },
  },
});

export function readKeyPairs(value: unknown): readonly KeyPair[] {
  return KEY_PAIRS.check(value).keypairs.map(({ keypair }) => ({
    name: keypair.name,
    publicKey: keypair.public_key,
  }));
}
