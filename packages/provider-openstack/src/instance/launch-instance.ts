import { ImageError, type LaunchRequest } from '@nodepool-builder/image-builder';
import { type LaunchRecord, launchTags } from '@nodepool-builder/image-builder/internal';
import { CloudError, poll } from '@nodepool-builder/image-builder/plugin';
import { createdAt, type GlanceImage } from '../glance-image.ts';
import type { InstanceCloud } from './instance-cloud.ts';
import { keyPairOfLaunch } from './launches.ts';
import { type Flavor, faultOf, isPublic, type NovaServer, stateOf } from './nova-server.ts';

/** Max length of a server name in Nova, in characters. */
const MAX_NAME_LENGTH = 255;

/**
 * Creates a server and its resources, and waits until it boots. Requests that create something are not aborted, because
 * a cleanup needs the ids in their responses.
 *
 * @returns the server id
 * @throws ImageError `image-not-found`, `launch-failed`
 * @throws CloudError
 */
export async function launchInstance(
  cloud: InstanceCloud,
  launch: LaunchRecord,
  request: LaunchRequest,
  signal: AbortSignal,
): Promise<string> {
  const { compute } = cloud;
  const { id: imageId } = await baseImage(cloud, request.image, signal);
  const flavorId = await flavorFor(cloud, request, signal);
  const networks = await networkIds(cloud, signal);
  const poolId = cloud.pool === undefined ? undefined : await networkId(cloud, cloud.pool, signal);
  signal.throwIfAborted();
  const unaborted = new AbortController().signal;
  await compute.createKeyPair(keyPairOfLaunch(launch, cloud.provider, request.publicKey), unaborted);
  signal.throwIfAborted();
  const id = await compute.createServer(
    {
      name: `${cloud.namePrefix}${request.buildId}`.slice(0, MAX_NAME_LENGTH),
      imageId,
      flavorId,
      keyName: launch.name,
      metadata: launchTags(cloud.provider, launch),
      networks,
      configDrive: cloud.configDrive,
      userData: request.userData,
    },
    unaborted,
  );
  const server = await bootedServer(cloud, id, signal);
  if (poolId !== undefined && !isPublic(server)) await addFloatingIp(cloud, launch, id, poolId, signal);
  return id;
}

/**
 * The image with this id, or the newest active image with this name that the project may use.
 *
 * @throws ImageError `image-not-found`
 * @throws CloudError
 */
export async function baseImage(
  { name, images }: InstanceCloud,
  nameOrId: string,
  signal: AbortSignal,
): Promise<GlanceImage> {
  const byId = await images.get(nameOrId, signal).catch((error: unknown) => {
    // Glance responds with 404 to a name, and with 400 to a text that cannot be an id.
    const isName =
      error instanceof CloudError && (error.code === 'not-found' || error.code === 'bad-request');
    if (isName) return undefined;
    throw error;
  });
  const found =
    byId?.status === 'active' ? [byId] : await images.find({ name: nameOrId, status: 'active' }, signal);
  const [newest] = found
    .filter((image) => image.os_hidden !== true)
    .toSorted((one, other) => createdAt(other).getTime() - createdAt(one).getTime());
  if (newest !== undefined) return newest;
  throw new ImageError(
    'image-not-found',
    `cloud ${name}: no active image has the name or id "${nameOrId}"; correct the base image, or upload it`,
  );
}

async function flavorFor(
  { name, compute }: InstanceCloud,
  { minRam = 0, nameFilter = '' }: LaunchRequest,
  signal: AbortSignal,
): Promise<string> {
  const flavors = await compute.flavors(signal);
  const flavor = chooseFlavor(flavors, { minRam, nameFilter });
  if (flavor !== undefined) return flavor.id;
  const available = flavors.map((one) => `${one.name} (${one.ram} MiB)`).join(', ') || 'none';
  throw new ImageError(
    'launch-failed',
    `cloud ${name}: no flavor has at least ${minRam} MiB and "${nameFilter}" in its name; correct min-ram or name-filter; the cloud has the flavors ${available}`,
  );
}

async function networkIds(cloud: InstanceCloud, signal: AbortSignal): Promise<'none' | string[] | undefined> {
  const { networks } = cloud;
  if (networks === undefined || networks === 'none') return networks;
  return await Promise.all(networks.map((network) => networkId(cloud, network, signal)));
}

async function networkId(cloud: InstanceCloud, nameOrId: string, signal: AbortSignal): Promise<string> {
  const [id, ...others] = await cloud.network.networkIds(nameOrId, signal);
  if (id !== undefined && others.length === 0) return id;
  const reason = id === undefined ? 'no network has' : 'several networks have';
  throw new ImageError(
    'launch-failed',
    `cloud ${cloud.name}: ${reason} the name or id "${nameOrId}"; use a network id under networks or pool of provider ${cloud.provider}`,
  );
}

async function bootedServer(cloud: InstanceCloud, id: string, signal: AbortSignal): Promise<NovaServer> {
  const check = async (): Promise<NovaServer | undefined> => {
    const server = await cloud.compute.server(id, signal);
    const state = stateOf(server);
    if (state === 'starting') return undefined;
    if (state !== 'failed') return server;
    throw new ImageError(
      'launch-failed',
      `cloud ${cloud.name}: server ${id} went to ${server.status}${faultOf(server)}; ask the operator of the cloud, or choose another flavor or image`,
    );
  };
  return await poll(check, { signal });
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
      `cloud ${name}: server ${serverId} has no port for a floating IP; give it a network under networks`,
    );
  }
  signal.throwIfAborted();
  await network.createFloatingIp({ networkId: poolId, portId, description }, new AbortController().signal);
}

/** Chooses the smallest sufficient flavor with a matching name, as nodepool does. */
export function chooseFlavor(
  flavors: readonly Flavor[],
  { minRam, nameFilter }: Required<Pick<LaunchRequest, 'minRam' | 'nameFilter'>>,
): Flavor | undefined {
  return flavors
    .toSorted((one, other) => one.ram - other.ram)
    .find(({ ram, name }) => ram >= minRam && name.includes(nameFilter));
}
