import { ImageError } from '@nodepool-builder/image-builder';
import {
  type FoundLaunch,
  type LaunchRecord,
  launchTags,
  readLaunch,
} from '@nodepool-builder/image-builder/internal';
import { poll, unlessAbsent } from '@nodepool-builder/image-builder/plugin';
import type { InstanceCloud } from './instance-cloud.ts';
import { faultOf, isGone, type KeyPair } from './nova-server.ts';

type Tags = Readonly<Record<string, unknown>>;

/** Builds a key pair whose key comment contains the tags of the launch. */
export function keyPairOfLaunch(launch: LaunchRecord, provider: string, publicKey: string): KeyPair {
  const [type, key] = publicKey.trim().split(/\s+/);
  const comment = encodeURIComponent(JSON.stringify(launchTags(provider, launch)));
  return { name: launch.name, public_key: `${type} ${key} ${comment}` };
}

/** Reads the tags in the key comment of a key pair. None if it has another comment. */
function tagsOfKeyPair({ public_key: publicKey }: KeyPair): Tags {
  const [, , comment = ''] = publicKey.trim().split(/\s+/);
  try {
    return Object(JSON.parse(decodeURIComponent(comment)));
  } catch {
    return {};
  }
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
  const found = new Map<string, { readonly tags: Tags; readonly machineId: string | undefined }>();
  const add = (name: unknown, tags: Tags, id?: string): void => {
    if (typeof name !== 'string' || !name.startsWith(namePrefix)) return;
    const { tags: known, machineId = id } = found.get(name) ?? {};
    found.set(name, { tags: { ...tags, ...known }, machineId });
  };
  for (const pair of keyPairs) add(pair.name, tagsOfKeyPair(pair));
  for (const server of servers) {
    if (!isGone(server)) add(server.key_name, server.metadata ?? {}, server.id);
  }
  for (const { description } of floatingIps) add(description, {});
  return Array.from(found, ([name, { tags, machineId }]) => ({ record: readLaunch(name, tags), machineId }));
}

/** Seconds until a deleted server must be gone. Nova waits while the server's host does not respond. */
const REMOVAL_TIMEOUT = 60;

/**
 * Removes all existing resources of a launch. The key pair comes last because it contains the launch record.
 *
 * @throws ImageError `cleanup-failed`
 * @throws CloudError
 */
export async function removeLaunch(
  cloud: InstanceCloud,
  { name }: LaunchRecord,
  _id: string | undefined,
  signal: AbortSignal,
): Promise<void> {
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
