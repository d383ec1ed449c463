import {
  type CapturedImage,
  type CaptureRequest,
  ImageError,
  type Instance,
  type InstanceAddress,
  type InstanceState,
  type OperationOptions,
} from '@nodepool-builder/image-builder';
import { type Probe, waitForPort, withAbort } from '@nodepool-builder/image-builder/module-kit';
import { OpenStackError } from '../openstack-error.ts';
import { unlessAbsent } from '../unless-absent.ts';
import { until } from '../upload/poll.ts';
import { captureServer } from './capture-server.ts';
import { chooseAddress } from './choose-address.ts';
import type { InstanceCloud } from './instance-cloud.ts';
import type { LaunchRecord } from './launch-record.ts';
import { isGone, type NovaServer, stateOf } from './nova-server.ts';
import { removeLaunch } from './remove-launch.ts';

/** Between two looks whether a server that does not answer still runs, in milliseconds. */
const LOOK_INTERVAL = 5000;

/** A server of Nova, or what is left of a launch that came to none. */
export class OpenStackInstance implements Instance {
  readonly id: string;
  readonly buildId: string;
  readonly launchedAt: Date;
  readonly #cloud: () => Promise<InstanceCloud>;
  readonly #launch: LaunchRecord;
  readonly #serverId: string | undefined;

  /** @param serverId undefined where there is none. */
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
      const { settings } = await this.#cloud();
      const server = await this.#server(signal);
      const isThere = server !== undefined && stateOf(server) !== 'failed';
      const host = isThere ? chooseAddress(server, settings.ipv6Preferred ?? false) : undefined;
      if (host !== undefined) return { host, port: this.#launch.port };
      throw this.#failed('is not reached', server, isThere ? 'it has no address' : undefined);
    });
  }

  async waitReachable(probe: Probe, options: OperationOptions = {}): Promise<InstanceAddress> {
    return await withAbort(options, async (signal) => {
      const address = await this.address({ signal });
      let looked = -Infinity;
      const check = async (): Promise<void> => {
        if (performance.now() - looked < LOOK_INTERVAL) return;
        const server = await this.#server(signal);
        looked = performance.now();
        if (server === undefined || stateOf(server) !== 'running')
          throw this.#failed('is not reached', server);
      };
      await waitForPort(address, probe, check, signal);
      return address;
    });
  }

  /** @throws ImageError `instance-failed` for a server that is not there */
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
        // It may be stopping already, or gone: the wait tells.
        await compute.stop(server.id, signal).catch(unlessOvertaken);
      }
      await this.waitStopped({ signal });
    });
  }

  async waitStopped(options: OperationOptions = {}): Promise<void> {
    await withAbort(options, async (signal) => {
      await until(async () => {
        const server = await this.#server(signal);
        const state = server === undefined ? 'failed' : stateOf(server);
        if (state === 'failed') throw this.#failed('did not power off', server);
        return state === 'stopped' || undefined;
      }, signal);
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
        if (!(error instanceof OpenStackError)) throw error;
        throw new ImageError(
          'cleanup-failed',
          `instance ${this.id} of build ${this.buildId} could not be removed: ${error.message}`,
          { cause: error },
        );
      }
    });
  }

  /** Undefined for one that is not there any more. */
  async #server(signal: AbortSignal): Promise<NovaServer | undefined> {
    if (this.#serverId === undefined) return undefined;
    const { compute } = await this.#cloud();
    const server = await compute.server(this.#serverId, signal).catch(unlessAbsent);
    return server === undefined || isGone(server) ? undefined : server;
  }

  #failed(what: string, server: NovaServer | undefined, reason = reasonOf(server)): ImageError {
    return new ImageError(
      'instance-failed',
      `instance ${this.id} of build ${this.buildId} ${what}: ${reason}; its console log may tell more`,
    );
  }
}

function reasonOf(server: NovaServer | undefined): string {
  if (server === undefined) return 'the cloud does not have it (any more)';
  return `it is ${server.status}${server.fault && ` (${server.fault})`}`;
}

const OVERTAKEN: readonly string[] = ['conflict', 'not-found'];

function unlessOvertaken(error: unknown): undefined {
  if (error instanceof OpenStackError && OVERTAKEN.includes(error.code)) return;
  throw error;
}
