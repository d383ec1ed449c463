import { type ImageDescription, ImageError, type OperationOptions } from '@nodepool-builder/image-builder';
import {
  CloudInstances,
  type MachineCloud,
  ownerDigest,
  withAbort,
} from '@nodepool-builder/image-builder/internal';
import { unlessAbsent } from '@nodepool-builder/image-builder/plugin';
import { createdAt, reportedDigests } from '../glance-image.ts';
import { ImageApi } from '../image-api.ts';
import { type CloudOptions, LazyCloud } from '../session/openstack-session.ts';
import { ServiceClient } from '../session/service-client.ts';
import { captureServer, findCaptures } from './capture.ts';
import { ComputeApi } from './compute-api.ts';
import type { InstanceCloud, InstanceSettings } from './instance-cloud.ts';
import { baseImage, launchInstance } from './launch-instance.ts';
import { findLaunches, removeLaunch } from './launches.ts';
import { NetworkApi } from './network-api.ts';
import { chooseAddress, faultOf, isGone, type NovaServer, stateOf } from './nova-server.ts';

export interface OpenStackInstanceProviderOptions
  extends InstanceSettings,
    CloudOptions,
    Pick<InstanceCloud, 'retry'> {
  /** `providers[].name`. */
  readonly name: string;
  /**
   * Owner of the instances. Must not change while they exist, and must be unique among the builders with access to the
   * project. Instances of other owners are never listed or removed.
   */
  readonly owner: string;
  /**
   * Group within the owner's instances, of letters and digits. Instances of other scopes are not listed or removed.
   * Default: all scopes.
   */
  readonly scope?: string | undefined;
}

const NOVA: Omit<MachineCloud<InstanceCloud, NovaServer>, 'open'> = {
  launch: launchInstance,
  findLaunches,
  remove: removeLaunch,
  async read({ compute }, id, signal) {
    const server = await compute.server(id, signal).catch(unlessAbsent);
    return server === undefined || isGone(server) ? undefined : server;
  },
  stateOf,
  hostOf: (server, { ipv6Preferred = false }) => chooseAddress(server, ipv6Preferred),
  describeState: (server) => `it is ${server.status}${faultOf(server)}; see its console log`,
  powerOff: ({ compute }, id, signal) => compute.stop(id, signal),
  readConsole: ({ compute }, id, signal) => compute.consoleOutput(id, signal),
  capture: captureServer,
  findCaptures,
};

/** Runs instances as Nova servers. A launch creates a key pair, a server and, if needed, a floating IP. */
export class OpenStackInstanceProvider extends CloudInstances<InstanceCloud, NovaServer> {
  readonly #connection: LazyCloud<InstanceCloud>;

  constructor(options: OpenStackInstanceProviderOptions) {
    const { name, owner, scope } = options;
    const connection = new LazyCloud<InstanceCloud>(options, (session) => ({
      ...options,
      name: session.settings.name,
      provider: name,
      // Key pairs and floating IPs have no other field for the owner. Without a scope, the prefix matches all scopes.
      namePrefix: `nodepool-builder-${ownerDigest(owner, name)}-${scope === undefined ? '' : `${scope}-`}`,
      interval: 2,
      compute: new ComputeApi(new ServiceClient({ ...session.settings.compute, version: 'v2.1' }, session)),
      network: new NetworkApi(new ServiceClient({ ...session.settings.network, version: 'v2.0' }, session)),
      images: new ImageApi(session),
    }));
    super(name, { ...NOVA, open: () => connection.open() });
    this.#connection = connection;
  }

  /**
   * Returns the id of a base image and the digests that Glance reports.
   *
   * @throws CloudError
   */
  async describeImage(image: string, options: OperationOptions = {}): Promise<ImageDescription | undefined> {
    return await withAbort(options, async (signal) => {
      try {
        const found = await baseImage(await this.cloud.open(), image, signal);
        return {
          digest: reportedDigests(found),
          annotations: { id: found.id, 'created-at': createdAt(found).toISOString() },
        };
      } catch (error) {
        if (error instanceof ImageError && error.code === 'image-not-found') return undefined;
        throw error;
      }
    });
  }

  /** Aborts running operations; they reject with `aborted`. */
  close(): void {
    this.#connection.close();
  }
}
