import type { InstanceState, SettingsOf } from '@nodepool-builder/image-builder';
import { NUMBER, objectOf, TEXT } from '@nodepool-builder/image-builder/internal';
import { JsonReader } from '@nodepool-builder/image-builder/plugin';
import type { BodyReader } from '../session/service-client.ts';

const ADDRESS = objectOf({ addr: TEXT }, { version: {}, 'OS-EXT-IPS:type': {} });

export const SERVER = objectOf(
  {
    id: TEXT,
    /** `BUILD`, `ACTIVE`, `SHUTOFF`, `ERROR` and so on. */
    status: TEXT,
  },
  {
    /** Current task; null if idle, and absent where the cloud hides it. */
    'OS-EXT-STS:task_state': {},
    fault: objectOf({ message: TEXT }),
    accessIPv4: {},
    accessIPv6: {},
    key_name: {},
    addresses: { type: ['object', 'null'], additionalProperties: { type: 'array', items: ADDRESS } },
    metadata: { type: ['object', 'null'] },
  },
);

/** A server in Nova. */
export type NovaServer = SettingsOf<typeof SERVER>;

/** States by Nova status. Any other status means that a build cannot use the server. */
const STATES: Readonly<Record<string, InstanceState>> = {
  BUILD: 'starting',
  ACTIVE: 'running',
  REBOOT: 'running',
  HARD_REBOOT: 'running',
  SHUTOFF: 'stopped',
};

/** Statuses of deleted servers, which Nova still lists for a while. */
const GONE: readonly string[] = ['DELETED', 'SOFT_DELETED'];

export function stateOf({ status }: NovaServer): InstanceState {
  return STATES[status] ?? 'failed';
}

export function isGone({ status }: NovaServer): boolean {
  return GONE.includes(status);
}

/** Formats Nova's reason for a failure, after a colon. Empty if Nova gives none. */
export function faultOf({ fault }: NovaServer): string {
  return fault?.message ? `: ${fault.message}` : '';
}

/** Chooses the login address: Nova's access address, else a floating IP, else a fixed IP. */
export function chooseAddress(server: NovaServer, ipv6Preferred: boolean): string | undefined {
  const sign = ipv6Preferred ? -1 : 1;
  const [best] = addressesOf(server).toSorted(
    (one, other) => one.rank - other.rank || sign * (one.version - other.version),
  );
  return best?.address;
}

/** Returns whether a server has an address outside its networks. */
export function isPublic(server: NovaServer): boolean {
  return addressesOf(server).some(({ rank }) => rank < FIXED);
}

const [ACCESS, FLOATING, FIXED] = [0, 1, 2];

/** Lists all addresses with a rank; lower is better. */
function addressesOf({ accessIPv4, accessIPv6, addresses }: NovaServer): readonly {
  readonly address: string;
  readonly version: number;
  readonly rank: number;
}[] {
  const access = [
    { address: accessIPv4, version: 4 },
    { address: accessIPv6, version: 6 },
  ].flatMap(({ address, version }) =>
    typeof address === 'string' && address !== '' ? [{ address, version, rank: ACCESS }] : [],
  );
  const others = Object.values(addresses ?? {}).flat();
  return [
    ...access,
    ...others.map(({ addr: address, version, 'OS-EXT-IPS:type': type }) => {
      return { address, version: version === 6 ? 6 : 4, rank: type === 'floating' ? FLOATING : FIXED };
    }),
  ];
}

export const SERVER_READER: BodyReader<NovaServer> = new JsonReader(SERVER);

const FLAVOR = objectOf({ id: TEXT, name: TEXT, ram: NUMBER });

/** A flavor in Nova, with its RAM in MiB. */
export type Flavor = SettingsOf<typeof FLAVOR>;

export const FLAVOR_READER: BodyReader<Flavor> = new JsonReader(FLAVOR);

export const KEY_PAIR = objectOf({ name: TEXT, public_key: TEXT });

/** A key pair of the user. */
export type KeyPair = SettingsOf<typeof KEY_PAIR>;
