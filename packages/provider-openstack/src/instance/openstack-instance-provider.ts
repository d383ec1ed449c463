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

/** How long a launch that failed is cleared up after, in milliseconds: what is left then is in the list. */
const CLEARING_TIME = 120_000;

const DEFAULT_RETRY: TransferRetries = { attempts: 3, delay: 5 };

/** How an {@link OpenStackInstanceProvider} is set up. */
export interface OpenStackInstanceProviderOptions extends InstanceSettings {
  /** `providers[].name`. */
  readonly name: string;
  /**
   * Whose the instances are: a text that stays the same as long as they may live, and that no other builder with
   * rights in the project has. What another owner launched is never listed or removed.
   */
  readonly owner: string;
  /**
   * A part of what the owner launches, of letters and digits: others of the owner are not listed or removed. Default:
   * all that the owner launches, in whatever scope.
   */
  readonly scope?: string;
  /** Finds the cloud and the credentials: called when they are first needed, and again if that failed. */
  readonly settings: () => Promise<CloudSettings>;
  readonly logger: Logger;
  /** The rate of requests, and how single ones are retried. */
  readonly session?: Omit<SessionOptions, 'logger'>;
  /** How often a captured image is fetched. Default: 3 times, the second after 5 s. */
  readonly retry?: TransferRetries;
}

interface OpenCloud extends InstanceCloud {
  readonly session: OpenStackSession;
}

/**
 * Runs instances as servers of Nova. A launch makes a key pair, a server, and a floating IP where one is needed, all
 * named after the launch and its owner, so that each is found again, whatever breaks off.
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

  /** Ends what is under way: it rejects with `aborted`. */
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

  /** Whoever aborted the launch does not abort this. */
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
 * Prefix of the names of all that one owner makes in a cloud for one provider. Key pairs and descriptions of floating
 * IPs have room for nothing else, and several builders may share a project. Without a scope, it is also the prefix of
 * what has one.
 */
function namePrefix(owner: string, provider: string, scope?: string): string {
  const whose = createHash('sha256')
    .update(JSON.stringify([owner, provider]))
    .digest('hex');
  return `nodepool-builder-${whose.slice(0, DIGITS)}-${scope === undefined ? '' : `${scope}-`}`;
}

/** A name for what is made for one instance. */
function launchName(prefix: string): string {
  return `${prefix}${randomUUID()}`;
}
