import { withAbort } from '../cancellation.ts';
import { poll } from '../cloud/poll.ts';
import { CloudError, unlessAbsent } from '../cloud-error.ts';
import { ImageError } from '../errors.ts';
import type { Logger, OperationOptions } from '../types.ts';
import type {
  CapturedImage,
  CaptureRequest,
  Instance,
  InstanceAddress,
  InstanceState,
  LaunchRequest,
  Probe,
  StoredCapture,
} from './instance-provider.ts';
import type { FoundLaunch, LaunchRecord } from './launch-record.ts';
import { waitForPort } from './wait-for-port.ts';

/** Interval of checks whether an unreachable machine is still running, in milliseconds. */
const CHECK_INTERVAL = 5000;

/** Place in a cloud where one provider launches instances for one builder. */
export interface MachineSite {
  /** Prefix of the names of launches. */
  readonly namePrefix: string;
  /** Max seconds between two polls of a pending resource. */
  readonly interval: number;
  readonly logger: Logger;
}

/** Functions of a cloud. `Machine` is the cloud's description of a machine. They throw CloudError. */
export interface MachineCloud<Site extends MachineSite, Machine> {
  /** Opens the connection on first use. */
  open(): Promise<Site>;
  /** Launches a machine and waits until it boots. The caller cleans up after a failure. @returns the machine id */
  launch(site: Site, launch: LaunchRecord, request: LaunchRequest, signal: AbortSignal): Promise<string>;
  /** Lists the launches of this builder for this provider. */
  findLaunches(site: Site, signal: AbortSignal): Promise<readonly FoundLaunch[]>;
  /** Removes all resources of a launch. Missing ones are not an error. */
  remove(site: Site, launch: LaunchRecord, id: string | undefined, signal: AbortSignal): Promise<void>;
  /** Describes a machine; undefined if it does not exist. */
  read(site: Site, id: string, signal: AbortSignal): Promise<Machine | undefined>;
  stateOf(machine: Machine): InstanceState;
  /** Chooses the login address; undefined if the machine has none. */
  hostOf(machine: Machine, site: Site): string | undefined;
  /** Describes why a machine cannot be used: `it is ERROR`. */
  describeState(machine: Machine): string;
  /** Presses the power button. */
  powerOff(site: Site, id: string, signal: AbortSignal): Promise<unknown>;
  readConsole(site: Site, id: string, signal: AbortSignal): Promise<string>;
  /** Captures a stopped machine. */
  capture(site: Site, id: string, request: CaptureRequest, signal: AbortSignal): Promise<CapturedImage>;
  /** Lists captured images, even incomplete ones, except those that belong to an upload. */
  findCaptures(site: Site, signal: AbortSignal): Promise<readonly StoredCapture[]>;
}

/** A machine in a cloud, or the resources of a launch without a machine. */
export class CloudInstance<Site extends MachineSite, Machine> implements Instance {
  readonly id: string;
  readonly buildId: string;
  readonly launchedAt: Date;
  protected readonly launch: LaunchRecord;
  readonly #cloud: MachineCloud<Site, Machine>;
  readonly #machineId: string | undefined;

  /** @param machineId undefined for a launch without a machine */
  constructor(cloud: MachineCloud<Site, Machine>, launch: LaunchRecord, machineId: string | undefined) {
    this.id = machineId ?? launch.name;
    this.buildId = launch.buildId;
    this.launchedAt = launch.launchedAt;
    this.launch = launch;
    this.#cloud = cloud;
    this.#machineId = machineId;
  }

  async state(options: OperationOptions = {}): Promise<InstanceState> {
    return await this.run(options, async (site, signal) => this.#stateOf(await this.#read(site, signal)));
  }

  async address(options: OperationOptions = {}): Promise<InstanceAddress> {
    return await this.run(options, async (site, signal) => {
      const machine = await this.#read(site, signal);
      const isUsable = this.#stateOf(machine) !== 'failed';
      const host = isUsable ? this.#cloud.hostOf(machine as Machine, site) : undefined;
      if (host !== undefined) return { host, port: this.launch.port };
      throw this.#failed('is not reachable', machine, isUsable ? 'it has no address' : undefined);
    });
  }

  async waitReachable(probe: Probe, options: OperationOptions = {}): Promise<InstanceAddress> {
    return await this.run(options, async (site, signal) => {
      const address = await this.address({ signal });
      let checked = -Infinity;
      const check = async (): Promise<void> => {
        if (performance.now() - checked < CHECK_INTERVAL) return;
        const machine = await this.#read(site, signal);
        checked = performance.now();
        if (this.#stateOf(machine) !== 'running') throw this.#failed('is not reachable', machine);
      };
      await waitForPort(address, probe, check, signal);
      return address;
    });
  }

  /** @throws ImageError `instance-failed` for a missing machine */
  async consoleLog(options: OperationOptions = {}): Promise<string> {
    return await this.run(options, async (site, signal) => {
      const id = this.existingId('has no console');
      const output = await this.#cloud.readConsole(site, id, signal).catch(unlessAbsent);
      if (output !== undefined) return output;
      throw this.#failed('has no console', undefined);
    });
  }

  async stop(options: OperationOptions = {}): Promise<void> {
    await this.run(options, async (site, signal) => {
      if (this.#stateOf(await this.#read(site, signal)) === 'running') {
        // It may already be stopping or gone; waitStopped reports that.
        await this.#cloud.powerOff(site, this.id, signal).catch(unlessStopping);
      }
      await this.waitStopped({ signal });
    });
  }

  async waitStopped(options: OperationOptions = {}): Promise<void> {
    await this.run(options, async (site, signal) => {
      const check = async (): Promise<true | undefined> => {
        const machine = await this.#read(site, signal);
        const state = this.#stateOf(machine);
        if (state === 'failed') throw this.#failed('did not power off', machine);
        return state === 'stopped' || undefined;
      };
      await poll(check, { interval: site.interval, signal });
    });
  }

  async capture(request: CaptureRequest, options: OperationOptions = {}): Promise<CapturedImage> {
    return await this.run(options, async (site, signal) => {
      const machine = await this.#read(site, signal);
      if (this.#stateOf(machine) !== 'stopped') {
        throw this.#failed('cannot be captured before it is stopped', machine);
      }
      return await this.#cloud.capture(site, this.id, request, signal);
    });
  }

  async destroy(options: OperationOptions = {}): Promise<void> {
    await this.run(options, async (site, signal) => {
      try {
        await this.#cloud.remove(site, this.launch, this.#machineId, signal);
      } catch (error) {
        if (!(error instanceof CloudError)) throw error;
        const reason = `instance ${this.id} of build ${this.buildId} could not be removed: ${error.message}`;
        throw new ImageError('cleanup-failed', reason, { cause: error });
      }
    });
  }

  /** Runs an operation. */
  protected async run<T>(
    options: OperationOptions,
    work: (site: Site, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    return await withAbort(options, async (signal) => work(await this.#cloud.open(), signal));
  }

  /** Returns the machine id. @throws ImageError `instance-failed` for a launch without a machine */
  protected existingId(what: string): string {
    if (this.#machineId !== undefined) return this.#machineId;
    throw this.#failed(what, undefined);
  }

  async #read(site: Site, signal: AbortSignal): Promise<Machine | undefined> {
    return this.#machineId === undefined ? undefined : await this.#cloud.read(site, this.#machineId, signal);
  }

  #stateOf(machine: Machine | undefined): InstanceState {
    return machine === undefined ? 'failed' : this.#cloud.stateOf(machine);
  }

  #failed(what: string, machine: Machine | undefined, known?: string): ImageError {
    const state = machine === undefined ? 'it does not exist' : this.#cloud.describeState(machine);
    const reason = `instance ${this.id} of build ${this.buildId} ${what}: ${known ?? state}`;
    return new ImageError('instance-failed', reason);
  }
}

function unlessStopping(error: unknown): undefined {
  if (error instanceof CloudError && error.code === 'conflict') return;
  unlessAbsent(error);
}
