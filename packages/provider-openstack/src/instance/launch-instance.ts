import { ImageError, type LaunchRequest } from '@nodepool-builder/image-builder';
import { until } from '../upload/poll.ts';
import { baseImage } from './base-image.ts';
import { isPublic } from './choose-address.ts';
import type { InstanceCloud } from './instance-cloud.ts';
import { keyPairOfLaunch, type LaunchRecord, launchMetadata } from './launch-record.ts';
import { type Flavor, type NovaServer, stateOf } from './nova-server.ts';

/** Nova's limit, in characters. */
const LONGEST_NAME = 255;

/**
 * Creates a server and its resources, and waits until it boots. Requests that create something are not aborted: their
 * answers tell what a cleanup has to remove.
 *
 * @returns the id of the server
 * @throws ImageError `image-not-found`, `launch-failed`
 * @throws OpenStackError
 */
export async function launchInstance(
  cloud: InstanceCloud,
  launch: LaunchRecord,
  request: LaunchRequest,
  signal: AbortSignal,
): Promise<string> {
  const { compute, settings } = cloud;
  const { id: imageId } = await baseImage(cloud.images, request.image, signal);
  const flavorId = await flavorFor(cloud, request, signal);
  const networks = await networkIds(cloud, signal);
  const poolId = settings.pool === undefined ? undefined : await networkId(cloud, settings.pool, signal);
  signal.throwIfAborted();
  const whole = new AbortController().signal;
  await compute.createKeyPair(keyPairOfLaunch(launch, request.publicKey), whole);
  signal.throwIfAborted();
  const id = await compute.createServer(
    {
      name: `${cloud.namePrefix}${request.buildId}`.slice(0, LONGEST_NAME),
      imageId,
      flavorId,
      keyName: launch.name,
      metadata: launchMetadata(launch, cloud.provider),
      networks,
      configDrive: settings.configDrive,
      userData: request.userData,
    },
    whole,
  );
  const server = await bootedServer(cloud, id, signal);
  if (poolId !== undefined && !isPublic(server)) await addFloatingIp(cloud, launch, id, poolId, signal);
  return id;
}

async function flavorFor(
  { name, compute }: InstanceCloud,
  { minRam = 0, nameFilter = '' }: LaunchRequest,
  signal: AbortSignal,
): Promise<string> {
  const flavors = await compute.flavors(signal);
  const flavor = chooseFlavor(flavors, { minRam, nameFilter });
  if (flavor !== undefined) return flavor.id;
  const there = flavors.map((one) => `${one.name} (${one.ram} MiB)`).join(', ') || 'none';
  throw new ImageError(
    'launch-failed',
    `cloud ${name}: no flavor has at least ${minRam} MiB and "${nameFilter}" in its name; correct min-ram or name-filter; there are: ${there}`,
  );
}

async function networkIds(cloud: InstanceCloud, signal: AbortSignal): Promise<'none' | string[] | undefined> {
  const { networks } = cloud.settings;
  if (networks === undefined || networks === 'none') return networks;
  return await Promise.all(networks.map((network) => networkId(cloud, network, signal)));
}

async function networkId(cloud: InstanceCloud, nameOrId: string, signal: AbortSignal): Promise<string> {
  const [id, ...others] = await cloud.network.networkIds(nameOrId, signal);
  if (id !== undefined && others.length === 0) return id;
  const fault = id === undefined ? 'no network has' : 'several networks have';
  throw new ImageError(
    'launch-failed',
    `cloud ${cloud.name}: ${fault} the name or the id "${nameOrId}"; write the id of one under networks or pool of provider ${cloud.provider}`,
  );
}

async function bootedServer(cloud: InstanceCloud, id: string, signal: AbortSignal): Promise<NovaServer> {
  return await until(async () => {
    const server = await cloud.compute.server(id, signal);
    const state = stateOf(server);
    if (state === 'starting') return undefined;
    if (state !== 'failed') return server;
    throw new ImageError(
      'launch-failed',
      `cloud ${cloud.name}: server ${id} went to ${server.status}${server.fault && `: ${server.fault}`}; ask the operator of the cloud, or choose another flavor or image`,
    );
  }, signal);
}

async function addFloatingIp(
  { name, network }: InstanceCloud,
  { name: description }: LaunchRecord,
  serverId: string,
  poolId: string,
  signal: AbortSignal,
): Promise<void> {
  const [portId] = await network.portIds(serverId, signal);
  if (portId === undefined) {
    throw new ImageError(
      'launch-failed',
      `cloud ${name}: server ${serverId} has no port that a floating IP could lead to; give it a network under networks`,
    );
  }
  signal.throwIfAborted();
  await network.createFloatingIp({ networkId: poolId, portId, description }, new AbortController().signal);
}

/** Requirements of a flavor. */
export interface FlavorWish {
  /** MiB. */
  readonly minRam: number;
  /** A part of its name. */
  readonly nameFilter: string;
}

/** Chooses the smallest sufficient flavor with a matching name, as nodepool does. */
export function chooseFlavor(
  flavors: readonly Flavor[],
  { minRam, nameFilter }: FlavorWish,
): Flavor | undefined {
  return flavors
    .toSorted((one, other) => one.ram - other.ram)
    .find(({ ram, name }) => ram >= minRam && name.includes(nameFilter));
}
