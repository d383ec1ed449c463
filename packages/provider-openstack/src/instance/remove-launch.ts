import { ImageError } from '@nodepool-builder/image-builder';
import { unlessAbsent } from '../unless-absent.ts';
import { poll } from '../upload/poll.ts';
import type { InstanceCloud } from './instance-cloud.ts';
import { isGone } from './nova-server.ts';

/** Seconds that a server may take to go. Nova does not end it as long as its host does not answer. */
const REMOVAL_TIMEOUT = 60;

/**
 * Removes all that was made for a launch, whatever there is of it. The key pair goes last: as long as there is
 * anything, it tells whose that is.
 *
 * @throws ImageError `cleanup-failed`
 * @throws OpenStackError
 */
export async function removeLaunch(cloud: InstanceCloud, name: string, signal: AbortSignal): Promise<void> {
  const { compute, network, namePrefix } = cloud;
  const servers = await compute.servers(namePrefix, signal);
  for (const { id, keyName } of servers) if (keyName === name) await removeServer(cloud, id, signal);
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
  const look = async (): Promise<true | undefined> => {
    const server = await compute.server(id, signal).catch(unlessAbsent);
    if (server === undefined || isGone(server)) return true;
    if (server.status !== 'ERROR' || server.taskState !== null) return undefined;
    throw failed(`could not be deleted${server.fault && `: ${server.fault}`}; delete it by hand`);
  };
  const onTimeout = (): ImageError =>
    failed(
      `is not gone ${REMOVAL_TIMEOUT} s after it was deleted; ask the operator of the cloud whether its host runs`,
    );
  await poll(look, { timeout: REMOVAL_TIMEOUT, signal, onTimeout });
}
