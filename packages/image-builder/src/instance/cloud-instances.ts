import { randomUUID } from 'node:crypto';
import { withAbort } from '../cancellation.ts';
import { CloudError } from '../cloud-error.ts';
import { ImageError } from '../errors.ts';
import type { OperationOptions } from '../types.ts';
import { CloudInstance, type MachineCloud, type MachineSite } from './cloud-instance.ts';
import type { InstanceProvider, LaunchRequest, StoredCapture } from './instance-provider.ts';
import type { LaunchRecord } from './launch-record.ts';

/** Time limit for the cleanup after a failed launch, in milliseconds. `list` shows any orphans. */
const CLEANUP_TIME = 120_000;

/**
 * Runs instances as machines in a cloud. All resources of a launch contain its name and owner, so all of them can be
 * found again after any failure.
 */
export abstract class CloudInstances<
  Site extends MachineSite,
  Machine,
  One extends CloudInstance<Site, Machine> = CloudInstance<Site, Machine>,
> implements InstanceProvider, Disposable
{
  readonly name: string;
  protected readonly cloud: MachineCloud<Site, Machine>;

  constructor(name: string, cloud: MachineCloud<Site, Machine>) {
    this.name = name;
    this.cloud = cloud;
  }

  async launch(request: LaunchRequest, options: OperationOptions = {}): Promise<One> {
    return await withAbort(options, async (signal) => {
      try {
        return await this.#launch(request, signal);
      } catch (error) {
        if (!(error instanceof CloudError)) throw error;
        const reason = `launch for build ${request.buildId}: ${error.message}`;
        throw new ImageError('launch-failed', reason, { cause: error });
      }
    });
  }

  /** @throws CloudError */
  async list(options: OperationOptions = {}): Promise<readonly One[]> {
    return await withAbort(options, async (signal) => {
      const launches = await this.cloud.findLaunches(await this.cloud.open(), signal);
      return launches.map(({ record, machineId }) => this.instance(record, machineId));
    });
  }

  /**
   * Lists captured images of our instances, even incomplete ones, except those that belong to an upload.
   *
   * @throws CloudError
   */
  async captures(options: OperationOptions = {}): Promise<readonly StoredCapture[]> {
    return await withAbort(options, async (signal) =>
      this.cloud.findCaptures(await this.cloud.open(), signal),
    );
  }

  /** Aborts running requests. */
  abstract close(): void;

  [Symbol.dispose](): void {
    this.close();
  }

  protected instance(record: LaunchRecord, machineId: string | undefined): One {
    return new CloudInstance(this.cloud, record, machineId) as One;
  }

  async #launch(request: LaunchRequest, signal: AbortSignal): Promise<One> {
    const { buildId, port } = request;
    const site = await this.cloud.open();
    const record = { name: `${site.namePrefix}${randomUUID()}`, buildId, port, launchedAt: new Date() };
    try {
      return this.instance(record, await this.cloud.launch(site, record, request, signal));
    } catch (error) {
      await this.#removeFailed(site, record);
      throw error;
    }
  }

  /** Removes the resources of a failed launch, even if the launch was aborted. */
  async #removeFailed(site: Site, record: LaunchRecord): Promise<void> {
    try {
      await this.cloud.remove(site, record, undefined, AbortSignal.timeout(CLEANUP_TIME));
    } catch (error) {
      site.logger.warn(
        `provider ${this.name}: the cleanup after the failed launch ${record.name} failed: ${(error as Error).message}`,
      );
    }
  }
}
