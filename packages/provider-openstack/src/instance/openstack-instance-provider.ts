import { createHash, randomUUID } from 'node:crypto';
import {
  ImageError,
  type InstanceProvider,
  type LaunchRequest,
  type Logger,
  type OperationOptions,
  type StoredCapture,
} from '@nodepool-builder/image-builder';
import { withAbort } from '@nodepool-builder/image-builder/module-kit';
import type { CloudSettings } from '../cloud-settings.ts';
import { ImageApi } from '../image-api.ts';
import { OpenStackError } from '../openstack-error.ts';
import { OpenStackSession, type SessionOptions } from '../session/openstack-session.ts';
import { PROVIDER_NAME } from '../upload/image-properties.ts';
import type { TransferRetries } from '../upload/retry.ts';
import { isCaptured } from './capture-server.ts';
import { CapturedSnapshot } from './captured-snapshot.ts';
import { ComputeApi } from './compute-api.ts';
import { findLaunches } from './find-launches.ts';
import type { InstanceCloud, InstanceSettings } from './instance-cloud.ts';
import { launchInstance } from './launch-instance.ts';
import { NetworkApi } from './network-api.ts';
import { OpenStackInstance } from './openstack-instance.ts';
import { removeLaunch } from './remove-launch.ts';

/** Time limit for the cleanup after a failed launch, in milliseconds. Whatever it leaves is listed. */
const CLEARING_TIME = 120_000;

const DEFAULT_RETRY: TransferRetries = { attempts: 3, delay: 5 };

/** Settings of an {@link OpenStackInstanceProvider}. */
export interface OpenStackInstanceProviderOptions extends InstanceSettings {
  /** `providers[].name`. */
  readonly name: string;
  /**
   * Owner of the instances: a text that stays the same while they live, and that no other builder with access to the
   * project uses. Instances of other owners are never listed or removed.
   */
  readonly owner: string;
  /**
   * Group of the owner's instances, of letters and digits; instances of other scopes are not listed or removed.
   * Default: the instances of all scopes.
   */
  readonly scope?: string;
  /** Finds the cloud and the credentials. It is called on first use, and again after a failure. */
  readonly settings: () => Promise<CloudSettings>;
  readonly logger: Logger;
  /** Rate limit and retries of requests. */
  readonly session?: Omit<SessionOptions, 'logger'>;
  /** Retries of the download of a captured image. Default: 3 attempts, the second after 5 s. */
  readonly retry?: TransferRetries;
}

interface OpenCloud extends InstanceCloud {
  readonly session: OpenStackSession;
}

/**
 * Runs instances as servers of Nova. A launch creates a key pair, a server, and if needed a floating IP. Their names
 * contain the launch and its owner, so that each is found again after any failure.
 */
export class OpenStackInstanceProvider implements InstanceProvider, Disposable {
  readonly name: string;
  readonly #options: OpenStackInstanceProviderOptions;
  #cloud: Promise<OpenCloud> | undefined;

  constructor(options: OpenStackInstanceProviderOptions) {
    this.name = options.name;
    this.#options = options;
  }

  async launch(request: LaunchRequest, options: OperationOptions = {}): Promise<OpenStackInstance> {
    return await withAbort(options, async (signal) => {
      try {
        return await this.#launch(request, signal);
      } catch (error) {
        if (!(error instanceof OpenStackError)) throw error;
        throw new ImageError('launch-failed', `launch for build ${request.buildId}: ${error.message}`, {
          cause: error,
        });
      }
    });
  }

  /** @throws OpenStackError */
  async list(options: OperationOptions = {}): Promise<readonly OpenStackInstance[]> {
    return await withAbort(options, async (signal) => {
      const launches = await findLaunches(await this.#open(), signal);
      return launches.map(
        ({ record, serverId }) => new OpenStackInstance(() => this.#open(), record, serverId),
      );
    });
  }

  /**
   * The images that instances of ours were captured to, whole or not, as long as they do not belong to an upload.
   *
   * @throws OpenStackError
   */
  async captures(options: OperationOptions = {}): Promise<readonly StoredCapture[]> {
    return await withAbort(options, async (signal) => {
      const cloud = await this.#open();
      const images = await cloud.images.list({ [PROVIDER_NAME]: this.name }, signal);
      return images
        .filter((image) => isCaptured(image, cloud.namePrefix))
        .map((image) => new CapturedSnapshot(cloud, image));
    });
  }

  /** Aborts running operations; they reject with `aborted`. */
  close(): void {
    this.#cloud?.then(
      ({ session }) => session.close(),
      () => {}, // there is none
    );
    this.#cloud = undefined;
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async #launch(request: LaunchRequest, signal: AbortSignal): Promise<OpenStackInstance> {
    const { buildId, port } = request;
    const cloud = await this.#open();
    const record = { name: launchName(cloud.namePrefix), buildId, port, launchedAt: new Date() };
    try {
      const serverId = await launchInstance(cloud, record, request, signal);
      return new OpenStackInstance(() => this.#open(), record, serverId);
    } catch (error) {
      await this.#removeFailed(cloud, record.name);
      throw error;
    }
  }

  /** An abort of the launch does not abort the cleanup. */
  async #removeFailed(cloud: InstanceCloud, name: string): Promise<void> {
    try {
      await removeLaunch(cloud, name, AbortSignal.timeout(CLEARING_TIME));
    } catch (error) {
      cloud.logger.warn(`launch ${name} left something in cloud ${cloud.name}: ${(error as Error).message}`);
    }
  }

  async #open(): Promise<OpenCloud> {
    this.#cloud ??= this.#connect().catch((error: unknown) => {
      this.#cloud = undefined;
      throw error;
    });
    return await this.#cloud;
  }

  async #connect(): Promise<OpenCloud> {
    const { owner, scope, logger, retry = DEFAULT_RETRY } = this.#options;
    const settings = await this.#options.settings();
    const session = new OpenStackSession(settings, { ...this.#options.session, logger });
    const imageData = session.client({ ...settings.image, version: 'v2' });
    return {
      name: settings.name,
      provider: this.name,
      namePrefix: namePrefix(owner, this.name, scope),
      settings: this.#options,
      session,
      compute: new ComputeApi(session.client({ ...settings.compute, version: 'v2.1' })),
      network: new NetworkApi(session.client({ ...settings.network, version: 'v2.0' })),
      images: new ImageApi({
        cloud: settings.name,
        client: imageData,
        projectId: (signal) => session.projectId(signal),
      }),
      imageData,
      retry,
      logger,
    };
  }
}

const DIGITS = 12;

/**
 * Prefix of the names of everything that an owner creates in a cloud for one provider. Key pairs and floating IPs have
 * no other field for the owner, and several builders may share a project. Without a scope it matches all scopes.
 */
function namePrefix(owner: string, provider: string, scope?: string): string {
  const whose = createHash('sha256')
    .update(JSON.stringify([owner, provider]))
    .digest('hex');
  return `nodepool-builder-${whose.slice(0, DIGITS)}-${scope === undefined ? '' : `${scope}-`}`;
}

/** Name of the resources of one launch. */
function launchName(prefix: string): string {
  return `${prefix}${randomUUID()}`;
}
