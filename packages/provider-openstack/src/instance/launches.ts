import { ImageError } from '@nodepool-builder/image-builder';
import { IMAGE_TAGS, JsonReader, poll, unlessAbsent } from '@nodepool-builder/image-builder/plugin';
import type { InstanceCloud } from './instance-cloud.ts';
import { faultOf, isGone, type KeyPair, type NovaServer } from './nova-server.ts';

/** Server metadata key of the login port. */
const PORT = 'nodepool_builder_port';
/** Server metadata key of the launch time, in ISO 8601. */
const LAUNCHED_AT = 'nodepool_builder_launched_at';

const TEXT = { type: 'string' } as const;
const TIME = { type: 'string', format: 'time' } as const;

/** Record of a launch, complete before its server exists. */
export interface LaunchRecord {
  /** Name of the key pair, and description of the floating IP. */
  readonly name: string;
  readonly buildId: string;
  readonly launchedAt: Date;
  /** TCP port of the login. */
  readonly port: number;
}

/** Converts a launch record to server metadata. */
export function launchMetadata(
  { buildId, launchedAt, port }: LaunchRecord,
  provider: string,
): Record<string, string> {
  return {
    [IMAGE_TAGS.provider]: provider,
    [IMAGE_TAGS.imageId]: buildId,
    [PORT]: String(port),
    [LAUNCHED_AT]: launchedAt.toISOString(),
  };
}

const METADATA = new JsonReader({
  type: 'object',
  required: [IMAGE_TAGS.imageId, LAUNCHED_AT, PORT],
  properties: { [IMAGE_TAGS.imageId]: TEXT, [LAUNCHED_AT]: TIME, [PORT]: TEXT },
});

/** Reads a launch record from server metadata. Undefined if it is incomplete or invalid. */
function recordOfServer(name: string, { metadata }: NovaServer): LaunchRecord | undefined {
  return unlessInvalid(() => {
    const {
      [IMAGE_TAGS.imageId]: buildId,
      [LAUNCHED_AT]: launchedAt,
      [PORT]: port,
    } = METADATA.check(metadata ?? {});
    return { name, buildId, launchedAt: new Date(launchedAt), port: Number(port) };
  });
}

/** Builds a key pair whose key comment contains the launch record. */
export function keyPairOfLaunch({ name, ...rest }: LaunchRecord, publicKey: string): KeyPair {
  const [type, key] = publicKey.trim().split(/\s+/);
  return { name, public_key: `${type} ${key} ${encodeURIComponent(JSON.stringify(rest))}` };
}

const COMMENT = new JsonReader({
  type: 'object',
  required: ['buildId', 'launchedAt', 'port'],
  properties: { buildId: TEXT, launchedAt: TIME, port: { type: 'number' } },
});

/** Reads a launch record from the key comment of a key pair. Undefined for a foreign key pair. */
function recordOfKeyPair({ name, public_key: publicKey }: KeyPair): LaunchRecord | undefined {
  const [, , comment = ''] = publicKey.trim().split(/\s+/);
  return unlessInvalid(() => {
    const { buildId, launchedAt, port } = COMMENT.parse(decodeURIComponent(comment));
    return { name, buildId, launchedAt: new Date(launchedAt), port };
  });
}

function unlessInvalid<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** A launch with at least one resource in the cloud. */
export interface FoundLaunch {
  readonly record: LaunchRecord;
  /** Id of the server; undefined if the launch has none. */
  readonly serverId: string | undefined;
}

/** Lists all launches of this builder for this provider, found by resource name. */
export async function findLaunches(
  { compute, network, namePrefix }: InstanceCloud,
  signal: AbortSignal,
): Promise<readonly FoundLaunch[]> {
  // Reverse order of creation, so that the record of a running launch is always found.
  const floatingIps = await network.floatingIps({}, signal);
  const servers = await compute.servers(namePrefix, signal);
  const keyPairs = await compute.keyPairs(signal);
  const found = new Map<string, Partial<FoundLaunch>>();
  const add = (name: unknown, read?: (name: string) => LaunchRecord | undefined, id?: string): void => {
    if (typeof name !== 'string' || !name.startsWith(namePrefix)) return;
    const { record = read?.(name), serverId = id } = found.get(name) ?? {};
    found.set(name, { ...(record && { record }), serverId });
  };
  for (const pair of keyPairs) add(pair.name, () => recordOfKeyPair(pair));
  for (const server of servers) {
    if (!isGone(server)) add(server.key_name, (name) => recordOfServer(name, server), server.id);
  }
  for (const { description } of floatingIps) add(description);
  return Array.from(found, ([name, { record = unknownLaunch(name), serverId }]) => ({ record, serverId }));
}

/** Placeholder record for a launch whose key pair and server metadata are gone. */
function unknownLaunch(name: string): LaunchRecord {
  return { name, buildId: name, launchedAt: new Date(0), port: 0 };
}

/** Seconds until a deleted server must be gone. Nova waits while the server's host does not respond. */
const REMOVAL_TIMEOUT = 60;

/**
 * Removes all existing resources of a launch. The key pair comes last because it contains the launch record.
 *
 * @throws ImageError `cleanup-failed`
 * @throws CloudError
 */
export async function removeLaunch(cloud: InstanceCloud, name: string, signal: AbortSignal): Promise<void> {
  const { compute, network, namePrefix } = cloud;
  const servers = await compute.servers(namePrefix, signal);
  for (const { id, key_name: keyName } of servers) {
    if (keyName === name) await removeServer(cloud, id, signal);
  }
  const floatingIps = await network.floatingIps({ description: name }, signal);
  for (const { id, description } of floatingIps) {
    if (description === name) await network.deleteFloatingIp(id, signal);
  }
  await compute.deleteKeyPair(name, signal);
}

async function removeServer(cloud: InstanceCloud, id: string, signal: AbortSignal): Promise<void> {
  const { compute } = cloud;
  await compute.deleteServer(id, signal);
  const failed = (why: string): ImageError =>
    new ImageError('cleanup-failed', `cloud ${cloud.name}: server ${id} ${why}`);
  const check = async (): Promise<true | undefined> => {
    const server = await compute.server(id, signal).catch(unlessAbsent);
    if (server === undefined || isGone(server)) return true;
    if (server.status !== 'ERROR' || server['OS-EXT-STS:task_state'] !== null) return undefined;
    throw failed(`could not be deleted${faultOf(server)}; delete it manually`);
  };
  const onTimeout = (): ImageError =>
    failed(
      `still exists ${REMOVAL_TIMEOUT} s after its deletion; ask the operator of the cloud whether its host is running`,
    );
  await poll(check, { timeout: REMOVAL_TIMEOUT, signal, onTimeout });
}
