import { writeFile } from 'node:fs/promises';
import {
  type CapturedImage,
  type CaptureRequest,
  ImageError,
  type Instance,
  type InstanceAddress,
  type InstanceState,
  type OperationOptions,
  type Probe,
} from '@nodepool-builder/image-builder';
import { waitForPort, withAbort } from '@nodepool-builder/image-builder/internal';
import { CloudError, poll, unlessAbsent } from '@nodepool-builder/image-builder/plugin';
import { awsCode } from '../aws-error.ts';
import { captureInstance } from './capture.ts';
import { addressOf, type Ec2Instance, getInstance, isGone, stateOf, stateReason } from './ec2-instance.ts';
import { type InstanceSite, type LaunchRecord, removeLaunch } from './launches.ts';
import { readPassword } from './windows-password.ts';

/** Interval of checks whether an unreachable instance is still running, in milliseconds. */
const CHECK_INTERVAL = 5000;

/** An instance in EC2, or the key pair of a launch without an instance. */
export class AwsInstance implements Instance {
  readonly id: string;
  readonly buildId: string;
  readonly launchedAt: Date;
  readonly screenshotType = 'jpg';
  readonly #site: () => Promise<InstanceSite>;
  readonly #launch: LaunchRecord;
  readonly #instanceId: string | undefined;

  /** @param instanceId undefined for a launch without an instance */
  constructor(site: () => Promise<InstanceSite>, launch: LaunchRecord, instanceId: string | undefined) {
    this.id = instanceId ?? launch.name;
    this.buildId = launch.buildId;
    this.launchedAt = launch.launchedAt;
    this.#site = site;
    this.#launch = launch;
    this.#instanceId = instanceId;
  }

  async state(options: OperationOptions = {}): Promise<InstanceState> {
    return await withAbort(options, async (signal) => {
      const instance = await this.#read(signal);
      return instance === undefined ? 'failed' : stateOf(instance);
    });
  }

  async address(options: OperationOptions = {}): Promise<InstanceAddress> {
    return await withAbort(options, async (signal) => {
      const { entry } = await this.#site();
      const instance = await this.#read(signal);
      const isUsable = instance !== undefined && stateOf(instance) !== 'failed';
      const host = isUsable ? addressOf(instance, entry) : undefined;
      if (host !== undefined) return { host, port: this.#launch.port };
      throw this.#failed('is not reachable', instance, isUsable ? 'it has no address' : undefined);
    });
  }

  async waitReachable(probe: Probe, options: OperationOptions = {}): Promise<InstanceAddress> {
    return await withAbort(options, async (signal) => {
      const address = await this.address({ signal });
      let checked = -Infinity;
      const check = async (): Promise<void> => {
        if (performance.now() - checked < CHECK_INTERVAL) return;
        const instance = await this.#read(signal);
        checked = performance.now();
        const isUp = instance !== undefined && stateOf(instance) === 'running';
        if (!isUp) throw this.#failed('is not reachable', instance);
      };
      await waitForPort(address, probe, check, signal);
      return address;
    });
  }

  /** @throws ImageError `instance-failed` for a missing instance */
  async consoleLog(options: OperationOptions = {}): Promise<string> {
    return await withAbort(options, async (signal) => {
      const { region } = await this.#site();
      const InstanceId = this.#existingId('has no console');
      // Only Nitro instance types have the latest output.
      const read = async (Latest: boolean): Promise<string> => {
        const input = { InstanceId, ...(Latest && { Latest }) };
        const { Output: output = '' } = await region.ec2(signal).getConsoleOutput(input);
        return Buffer.from(output, 'base64').toString();
      };
      const output = await read(true)
        .catch(async (error: unknown) => {
          if (awsCode(error) !== 'UnsupportedOperation') throw error;
          return await read(false);
        })
        .catch(unlessAbsent);
      if (output !== undefined) return output;
      throw this.#failed('has no console', undefined);
    });
  }

  /**
   * Returns the administrator's password. Undefined for an operating system other than Windows, and on a host other
   * than that of the launch.
   */
  async password(options: OperationOptions = {}): Promise<string | undefined> {
    return await withAbort(options, async (signal) =>
      readPassword(await this.#site(), this.#launch.name, this.#existingId('has no password'), signal),
    );
  }

  async screenshot(path: string, options: OperationOptions = {}): Promise<void> {
    await withAbort(options, async (signal) => {
      const { region } = await this.#site();
      const InstanceId = this.#existingId('has no display');
      const { ImageData: data = '' } = await region.ec2(signal).getConsoleScreenshot({ InstanceId });
      await writeFile(path, Buffer.from(data, 'base64'));
    });
  }

  async stop(options: OperationOptions = {}): Promise<void> {
    await withAbort(options, async (signal) => {
      const { region } = await this.#site();
      const instance = await this.#read(signal);
      if (instance?.InstanceId !== undefined && stateOf(instance) === 'running') {
        const { InstanceId: id } = instance;
        // It may already be stopping or gone; waitStopped reports that.
        await region
          .ec2(signal)
          .stopInstances({ InstanceIds: [id] })
          .catch(unlessStopping);
      }
      await this.waitStopped({ signal });
    });
  }

  async waitStopped(options: OperationOptions = {}): Promise<void> {
    await withAbort(options, async (signal) => {
      const { interval } = await this.#site();
      const check = async (): Promise<true | undefined> => {
        const instance = await this.#read(signal);
        const state = instance === undefined ? 'failed' : stateOf(instance);
        if (state === 'failed') throw this.#failed('did not power off', instance);
        return state === 'stopped' || undefined;
      };
      const subject = `instance ${this.id}`;
      await poll(check, { subject, timeout: Number.POSITIVE_INFINITY, interval, signal });
    });
  }

  async capture(request: CaptureRequest, options: OperationOptions = {}): Promise<CapturedImage> {
    return await withAbort(options, async (signal) => {
      const instance = await this.#read(signal);
      if (instance?.InstanceId === undefined || stateOf(instance) !== 'stopped') {
        throw this.#failed('cannot be captured before it is stopped', instance);
      }
      return await captureInstance(await this.#site(), instance.InstanceId, request, signal);
    });
  }

  async destroy(options: OperationOptions = {}): Promise<void> {
    await withAbort(options, async (signal) => {
      try {
        await removeLaunch(await this.#site(), this.#launch, this.#instanceId, signal);
      } catch (error) {
        if (!(error instanceof CloudError)) throw error;
        throw new ImageError(
          'cleanup-failed',
          `instance ${this.id} of build ${this.buildId} could not be removed: ${error.message}`,
          { cause: error },
        );
      }
    });
  }

  /** Reads the instance; undefined if it does not exist. */
  async #read(signal: AbortSignal): Promise<Ec2Instance | undefined> {
    if (this.#instanceId === undefined) return undefined;
    const { region } = await this.#site();
    return await getInstance(region, this.#instanceId, signal);
  }

  #existingId(what: string): string {
    if (this.#instanceId !== undefined) return this.#instanceId;
    throw this.#failed(what, undefined);
  }

  #failed(what: string, instance: Ec2Instance | undefined, reason = whyOf(instance)): ImageError {
    return new ImageError(
      'instance-failed',
      `instance ${this.id} of build ${this.buildId} ${what}: ${reason}`,
    );
  }
}

function whyOf(instance: Ec2Instance | undefined): string {
  if (instance === undefined) return 'it does not exist';
  const reason = `it is ${instance.State?.Name}${stateReason(instance)}`;
  return isGone(instance) ? reason : `${reason}; see its console log`;
}

function unlessStopping(error: unknown): undefined {
  if (error instanceof CloudError && error.code === 'conflict') return;
  unlessAbsent(error);
}
