import type { CheckResult, Logger, OperationOptions } from '@nodepool-builder/image-builder';
import { CloudInstances, type LaunchRecord, ownerDigest } from '@nodepool-builder/image-builder/internal';
import { signalOf } from '@nodepool-builder/image-builder/plugin';
import { type AwsRegion, AwsSession, type SessionOptions } from '../aws-session.ts';
import type { AwsEntry } from '../aws-settings.ts';
import { diagnoseInstances } from '../diagnose-aws.ts';
import { AwsInstance, EC2_MACHINES } from './aws-instance.ts';
import type { Ec2Instance } from './ec2-instance.ts';
import type { InstanceSite } from './launches.ts';

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

/** Runs instances in EC2. A launch creates a key pair, an instance and its volumes. */
export class AwsInstanceProvider extends CloudInstances<InstanceSite, Ec2Instance, AwsInstance> {
  readonly #options: AwsInstanceProviderOptions;
  readonly #session: AwsSession;

  constructor(options: AwsInstanceProviderOptions) {
    const { entry } = options;
    const session = new AwsSession({ ...options.session, name: entry.name });
    super(entry.name, { ...EC2_MACHINES, open: async () => this.#siteIn(await session.open()) });
    this.#options = options;
    this.#session = session;
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

  protected override instance(record: LaunchRecord, instanceId: string | undefined): AwsInstance {
    return new AwsInstance(this.cloud, record, instanceId);
  }

  #siteIn(region: AwsRegion): InstanceSite {
    const { entry, owner, scope, interval = 5, logger, directory } = this.#options;
    const namePrefix = 'nodepool-builder-';
    const digest = ownerDigest(owner, this.name);
    return { region, entry, owner: digest, scope, namePrefix, interval, logger, directory };
  }
}
