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
import { captureServer } from './capture.ts';
import type { InstanceCloud } from './instance-cloud.ts';
import { type LaunchRecord, removeLaunch } from './launches.ts';
import { chooseAddress, faultOf, isGone, type NovaServer, stateOf } from './nova-server.ts';

/** Interval of checks whether an unreachable server is still running, in milliseconds. */
const CHECK_INTERVAL = 5000;

/** A server in Nova, or the resources of a launch without a server. */
export class OpenStackInstance implements Instance {
  readonly id: string;
  readonly buildId: string;
  readonly launchedAt: Date;
  readonly #cloud: () => Promise<InstanceCloud>;
  readonly #launch: LaunchRecord;
  readonly #serverId: string | undefined;

  /** @param serverId undefined for a launch without a server */
  constructor(cloud: () => Promise<InstanceCloud>, launch: LaunchRecord, serverId: string | undefined) {
    this.id = serverId ?? launch.name;
    this.buildId = launch.buildId;
    this.launchedAt = launch.launchedAt;
    this.#cloud = cloud;
    this.#launch = launch;
    this.#serverId = serverId;
  }

  async state(options: OperationOptions = {}): Promise<InstanceState> {
    return await withAbort(options, async (signal) => {
      const server = await this.#server(signal);
      return server === undefined ? 'failed' : stateOf(server);
    });
  }

  async address(options: OperationOptions = {}): Promise<InstanceAddress> {
    return await withAbort(options, async (signal) => {
      const { ipv6Preferred = false } = await this.#cloud();
      const server = await this.#server(signal);
      const isUsable = server !== undefined && stateOf(server) !== 'failed';
      const host = isUsable ? chooseAddress(server, ipv6Preferred) : undefined;
      if (host !== undefined) return { host, port: this.#launch.port };
      throw this.#failed('is not reachable', server, isUsable ? 'it has no address' : undefined);
    });
  }

  async waitReachable(probe: Probe, options: OperationOptions = {}): Promise<InstanceAddress> {
    return await withAbort(options, async (signal) => {
      const address = await this.address({ signal });
      let checked = -Infinity;
      const check = async (): Promise<void> => {
        if (performance.now() - checked < CHECK_INTERVAL) return;
        const server = await this.#server(signal);
        checked = performance.now();
        if (server === undefined || stateOf(server) !== 'running')
          throw this.#failed('is not reachable', server);
      };
      await waitForPort(address, probe, check, signal);
      return address;
    });
  }

  /** @throws ImageError `instance-failed` for a missing server */
  async consoleLog(options: OperationOptions = {}): Promise<string> {
    return await withAbort(options, async (signal) => {
      const { compute } = await this.#cloud();
      const output =
        this.#serverId && (await compute.consoleOutput(this.#serverId, signal).catch(unlessAbsent));
      if (output !== undefined) return output;
      throw this.#failed('has no console', undefined);
    });
  }

  async stop(options: OperationOptions = {}): Promise<void> {
    await withAbort(options, async (signal) => {
      const server = await this.#server(signal);
      if (server !== undefined && stateOf(server) === 'running') {
        const { compute } = await this.#cloud();
        // It may already be stopping or gone; waitStopped reports that.
        await compute.stop(server.id, signal).catch(unlessStopped);
      }
      await this.waitStopped({ signal });
    });
  }

  async waitStopped(options: OperationOptions = {}): Promise<void> {
    await withAbort(options, async (signal) => {
      const check = async (): Promise<true | undefined> => {
        const server = await this.#server(signal);
        const state = server === undefined ? 'failed' : stateOf(server);
        if (state === 'failed') throw this.#failed('did not power off', server);
        return state === 'stopped' || undefined;
      };
      await poll(check, { signal });
    });
  }

  async capture(request: CaptureRequest, options: OperationOptions = {}): Promise<CapturedImage> {
    return await withAbort(options, async (signal) => {
      const server = await this.#server(signal);
      if (server === undefined || stateOf(server) !== 'stopped') {
        throw this.#failed('cannot be captured before it is stopped', server);
      }
      return await captureServer(await this.#cloud(), server.id, request, signal);
    });
  }

  async destroy(options: OperationOptions = {}): Promise<void> {
    await withAbort(options, async (signal) => {
      try {
        await removeLaunch(await this.#cloud(), this.#launch.name, signal);
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

  /** Reads the server; undefined if it no longer exists. */
  async #server(signal: AbortSignal): Promise<NovaServer | undefined> {
    if (this.#serverId === undefined) return undefined;
    const { compute } = await this.#cloud();
    const server = await compute.server(this.#serverId, signal).catch(unlessAbsent);
    return server === undefined || isGone(server) ? undefined : server;
  }

  #failed(what: string, server: NovaServer | undefined, reason = faultReason(server)): ImageError {
    return new ImageError(
      'instance-failed',
      `instance ${this.id} of build ${this.buildId} ${what}: ${reason}`,
    );
  }
}

function faultReason(server: NovaServer | undefined): string {
  if (server === undefined) return 'it does not exist';
  return `it is ${server.status}${faultOf(server)}; see its console log`;
}

function unlessStopped(error: unknown): undefined {
  if (error instanceof CloudError && error.code === 'conflict') return;
  unlessAbsent(error);
}
