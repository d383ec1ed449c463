import { createHash, randomUUID } from 'node:crypto';
import {
  type ImageDescription,
  ImageError,
  type InstanceProvider,
  type LaunchRequest,
  type OperationOptions,
  type StoredCapture,
} from '@nodepool-builder/image-builder';
import { withAbort } from '@nodepool-builder/image-builder/internal';
import { CloudError, IMAGE_TAGS } from '@nodepool-builder/image-builder/plugin';
import { createdAt, reportedDigests } from '../glance-image.ts';
import { ImageApi } from '../image-api.ts';
import { type CloudOptions, LazyCloud } from '../session/openstack-session.ts';
import { CapturedSnapshot, isCaptured } from './capture.ts';
import { ComputeApi } from './compute-api.ts';
import type { InstanceCloud, InstanceSettings } from './instance-cloud.ts';
import { baseImage, launchInstance } from './launch-instance.ts';
import { findLaunches, removeLaunch } from './launches.ts';
import { NetworkApi } from './network-api.ts';
import { OpenStackInstance } from './openstack-instance.ts';

/** Time limit for the cleanup after a failed launch, in milliseconds. `list` shows any orphans. */
const CLEANUP_TIME = 120_000;

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

/**
 * Runs instances as Nova servers. A launch creates a key pair, a server and, if needed, a floating IP. The resource
 * names contain launch and owner, so all of them can be found again after any failure.
 */
export class OpenStackInstanceProvider implements InstanceProvider, Disposable {
  readonly name: string;
  readonly #cloud: LazyCloud<InstanceCloud>;

  constructor(options: OpenStackInstanceProviderOptions) {
    const { name, owner, scope } = options;
    this.name = name;
    this.#cloud = new LazyCloud(options, (session) => ({
      ...options,
      name: session.settings.name,
      provider: name,
      namePrefix: namePrefix(owner, name, scope),
      compute: new ComputeApi(session.client({ ...session.settings.compute, version: 'v2.1' })),
      network: new NetworkApi(session.client({ ...session.settings.network, version: 'v2.0' })),
      images: new ImageApi(session),
    }));
  }

  async launch(request: LaunchRequest, options: OperationOptions = {}): Promise<OpenStackInstance> {
    return await withAbort(options, async (signal) => {
      try {
        return await this.#launch(request, signal);
      } catch (error) {
        if (!(error instanceof CloudError)) throw error;
        throw new ImageError('launch-failed', `launch for build ${request.buildId}: ${error.message}`, {
          cause: error,
        });
      }
    });
  }

  /** @throws CloudError */
  async list(options: OperationOptions = {}): Promise<readonly OpenStackInstance[]> {
    return await withAbort(options, async (signal) => {
      const launches = await findLaunches(await this.#cloud.open(), signal);
      return launches.map(
        ({ record, serverId }) => new OpenStackInstance(() => this.#cloud.open(), record, serverId),
      );
    });
  }

  /**
   * Returns the id of a base image and the digests that Glance reports.
   *
   * @throws CloudError
   */
  async describeImage(image: string, options: OperationOptions = {}): Promise<ImageDescription | undefined> {
    return await withAbort(options, async (signal) => {
      try {
        const found = await baseImage(await this.#cloud.open(), image, signal);
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

  /**
   * Lists captured images of our instances, even incomplete ones, except those that belong to an upload.
   *
   * @throws CloudError
   */
  async captures(options: OperationOptions = {}): Promise<readonly StoredCapture[]> {
    return await withAbort(options, async (signal) => {
      const cloud = await this.#cloud.open();
      const images = await cloud.images.list({ [IMAGE_TAGS.provider]: this.name }, signal);
      return images
        .filter((image) => isCaptured(image, cloud.namePrefix))
        .map((image) => new CapturedSnapshot(cloud, image));
    });
  }

  /** Aborts running operations; they reject with `aborted`. */
  close(): void {
    this.#cloud.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async #launch(request: LaunchRequest, signal: AbortSignal): Promise<OpenStackInstance> {
    const { buildId, port } = request;
    const cloud = await this.#cloud.open();
    const record = { name: launchName(cloud.namePrefix), buildId, port, launchedAt: new Date() };
    try {
      const serverId = await launchInstance(cloud, record, request, signal);
      return new OpenStackInstance(() => this.#cloud.open(), record, serverId);
    } catch (error) {
      await this.#removeFailed(cloud, record.name);
      throw error;
    }
  }

  /** Removes the resources of a failed launch, even if the launch was aborted. */
  async #removeFailed(cloud: InstanceCloud, name: string): Promise<void> {
    try {
      await removeLaunch(cloud, name, AbortSignal.timeout(CLEANUP_TIME));
    } catch (error) {
      cloud.logger.warn(
        `cloud ${cloud.name}: the cleanup after the failed launch ${name} failed: ${(error as Error).message}`,
      );
    }
  }
}

const DIGITS = 12;

/**
 * Returns the name prefix of everything that an owner creates in a cloud for one provider. Key pairs and floating IPs
 * have no other field for the owner, and several builders may share a project. Without a scope, the prefix matches all
 * scopes.
 */
function namePrefix(owner: string, provider: string, scope?: string): string {
  const whose = createHash('sha256')
    .update(JSON.stringify([owner, provider]))
    .digest('hex');
  return `nodepool-builder-${whose.slice(0, DIGITS)}-${scope === undefined ? '' : `${scope}-`}`;
}

/** Creates the name that all resources of one launch share. */
function launchName(prefix: string): string {
  return `${prefix}${randomUUID()}`;
}
