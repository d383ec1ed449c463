import { createHash, randomUUID } from 'node:crypto';
import {
  type CheckResult,
  ImageError,
  type InstanceProvider,
  type LaunchRequest,
  type Logger,
  type OperationOptions,
  type StoredCapture,
} from '@nodepool-builder/image-builder';
import { withAbort } from '@nodepool-builder/image-builder/internal';
import { CloudError, signalOf } from '@nodepool-builder/image-builder/plugin';
import { type AwsRegion, AwsSession, type SessionOptions } from '../aws-session.ts';
import type { AwsEntry } from '../aws-settings.ts';
import { diagnoseInstances } from '../diagnose-aws.ts';
import { AwsInstance } from './aws-instance.ts';
import { findCaptures } from './capture.ts';
import { launchInstance } from './launch-instance.ts';
import { findLaunches, type InstanceSite, type LaunchRecord, removeLaunch } from './launches.ts';

/** Time limit for the cleanup after a failed launch, in milliseconds. `list` shows any orphans. */
const CLEANUP_TIME = 120_000;

export interface AwsInstanceProviderOptions {
  readonly entry: AwsEntry;
  /**
   * Owner of the instances. Must not change while they exist, and must be unique among the builders with access to the
   * account. Instances of other owners are never listed or removed.
   */
  readonly owner: string;
  /** Group within the owner's instances. Default: all scopes. */
  readonly scope?: string | undefined;
  readonly session: Omit<SessionOptions, 'name'>;
  /** Directory for the keys that decrypt passwords. Created with the first key. */
  readonly directory: string;
  /** Max seconds between two polls of a pending resource. Default 5. */
  readonly interval?: number | undefined;
  readonly logger: Logger;
}

/**
 * Runs instances in EC2. A launch creates a key pair, an instance and its volumes. Their tags contain launch and owner,
 * so all of them can be found again after any failure.
 */
export class AwsInstanceProvider implements InstanceProvider, Disposable {
  readonly name: string;
  readonly #options: AwsInstanceProviderOptions;
  readonly #session: AwsSession;

  constructor(options: AwsInstanceProviderOptions) {
    const { entry, session } = options;
    this.name = entry.name;
    this.#options = options;
    this.#session = new AwsSession({ ...session, name: entry.name });
  }

  async launch(request: LaunchRequest, options: OperationOptions = {}): Promise<AwsInstance> {
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
  async list(options: OperationOptions = {}): Promise<readonly AwsInstance[]> {
    return await withAbort(options, async (signal) => {
      const launches = await findLaunches(await this.#site(), signal);
      return launches.map(({ record, instanceId }) => this.#instance(record, instanceId));
    });
  }

  /**
   * Lists captured AMIs of our instances, even incomplete ones, except those that belong to an upload.
   *
   * @throws CloudError
   */
  async captures(options: OperationOptions = {}): Promise<readonly StoredCapture[]> {
    return await withAbort(options, async (signal) => findCaptures(await this.#site(), signal));
  }

  async *diagnose(options: OperationOptions = {}): AsyncIterable<CheckResult> {
    const { entry, session } = this.#options;
    const signal = signalOf(options);
    yield* diagnoseInstances({ entry, session, signal }, (region) => this.#siteIn(region));
  }

  /** Aborts running requests. */
  close(): void {
    this.#session.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async #launch(request: LaunchRequest, signal: AbortSignal): Promise<AwsInstance> {
    const { buildId, port } = request;
    const site = await this.#site();
    const record = { name: `nodepool-builder-${randomUUID()}`, buildId, port, launchedAt: new Date() };
    try {
      return this.#instance(record, await launchInstance(site, record, request, signal));
    } catch (error) {
      await this.#removeFailed(site, record);
      throw error;
    }
  }

  /** Removes the resources of a failed launch, even if the launch was aborted. */
  async #removeFailed(site: InstanceSite, record: LaunchRecord): Promise<void> {
    try {
      await removeLaunch(site, record, undefined, AbortSignal.timeout(CLEANUP_TIME));
    } catch (error) {
      site.logger.warn(
        `provider ${this.name}: cleanup after the failed launch ${record.name} failed: ${(error as Error).message}`,
      );
    }
  }

  #instance(record: LaunchRecord, instanceId: string | undefined): AwsInstance {
    return new AwsInstance(() => this.#site(), record, instanceId);
  }

  async #site(): Promise<InstanceSite> {
    return this.#siteIn(await this.#session.open());
  }

  #siteIn(region: AwsRegion): InstanceSite {
    const { entry, owner, scope, interval = 5, logger, directory } = this.#options;
    return { region, entry, owner: ownerDigest(owner, this.name), scope, interval, logger, directory };
  }
}

/** Hex digits of the digest. */
const DIGITS = 12;

/**
 * Returns a digest that identifies owner and provider, because several builders may share an account, and several
 * entries an owner.
 */
function ownerDigest(owner: string, provider: string): string {
  const text = JSON.stringify([owner, provider]);
  return createHash('sha256').update(text).digest('hex').slice(0, DIGITS);
}
