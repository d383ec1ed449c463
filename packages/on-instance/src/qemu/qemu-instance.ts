import {
  type CapturedImage,
  type CaptureRequest,
  FORMAT_NAMES,
  ImageError,
  type Instance,
  type InstanceAddress,
  type InstanceState,
  type OperationOptions,
  type Probe,
} from '@nodepool-builder/image-builder';
import {
  convertImage,
  isConvertible,
  objectOf,
  TEXT,
  waitForPort,
  withAbort,
} from '@nodepool-builder/image-builder/internal';
import { JsonReader, poll } from '@nodepool-builder/image-builder/plugin';
import { executeQmp } from './execute-qmp.ts';
import { forwardedPort } from './instance-arguments.ts';
import { INSTANCE_FILES, type InstanceDirectory } from './instance-directory.ts';

/** Milliseconds between two presses of the power button, because a booting system may miss one. */
const PUSH_INTERVAL = 10_000;

/** Max seconds between two queries of a machine's state. */
const STATE_INTERVAL = 0.25;

/** Instance states by QEMU's states. In all other states the machine is suspended. */
const STATES: Readonly<Record<string, InstanceState>> = { running: 'running', shutdown: 'stopped' };

/** A machine of QEMU on this host. */
export class QemuInstance implements Instance {
  readonly id: string;
  readonly buildId: string;
  readonly launchedAt: Date;
  readonly #directory: InstanceDirectory;

  constructor(directory: InstanceDirectory) {
    this.id = directory.id;
    this.buildId = directory.record.buildId;
    this.launchedAt = new Date(directory.record.launchedAt);
    this.#directory = directory;
  }

  async state({ signal }: OperationOptions = {}): Promise<InstanceState> {
    signal?.throwIfAborted();
    const reply = await this.#execute('query-status').catch(unlessEnded);
    if (reply !== undefined) return STATES[STATUS.check(reply).status] ?? 'failed';
    return (await this.#directory.isPoweredOff()) ? 'stopped' : 'failed';
  }

  async address({ signal }: OperationOptions = {}): Promise<InstanceAddress> {
    signal?.throwIfAborted();
    const info = { 'command-line': 'info usernet' };
    const usernet = await this.#execute('human-monitor-command', info).catch(unlessEnded);
    const port = typeof usernet === 'string' ? forwardedPort(usernet) : undefined;
    if (port === undefined) throw this.#failed('cannot be reached', await this.state());
    return { host: '127.0.0.1', port };
  }

  async waitReachable(probe: Probe, { signal }: OperationOptions = {}): Promise<InstanceAddress> {
    const address = await this.address({ ...(signal && { signal }) });
    const check = async (): Promise<void> => {
      const state = await this.state();
      if (state !== 'running') throw this.#failed('cannot be reached', state);
    };
    await waitForPort(address, probe, check, signal);
    return address;
  }

  async consoleLog({ signal }: OperationOptions = {}): Promise<string> {
    signal?.throwIfAborted();
    return await this.#directory.tail(INSTANCE_FILES.console);
  }

  async screenshot(path: string, { signal }: OperationOptions = {}): Promise<void> {
    signal?.throwIfAborted();
    const shown = await this.#execute('screendump', { filename: path, format: 'png' });
    if (shown === undefined) throw this.#failed('has no display', await this.state());
  }

  async stop(options: OperationOptions = {}): Promise<void> {
    const push = (): void => {
      void this.#execute('system_powerdown').catch(() => {}); // the wait reports the error
    };
    if ((await this.state(options)) === 'running') push();
    const pushing = setInterval(push, PUSH_INTERVAL);
    try {
      await this.waitStopped(options);
    } finally {
      clearInterval(pushing);
    }
  }

  async waitStopped(options: OperationOptions = {}): Promise<void> {
    const state = await withAbort(options, async (signal) => {
      const ended = async (): Promise<InstanceState | undefined> => {
        const current = await this.state({ signal });
        return current === 'running' ? undefined : current;
      };
      return await poll(ended, { interval: STATE_INTERVAL, signal });
    });
    if (state !== 'stopped') throw this.#failed('did not power off', state);
    await this.#endStopped();
  }

  async capture(_request: CaptureRequest, { signal }: OperationOptions = {}): Promise<CapturedImage> {
    signal?.throwIfAborted();
    const state = await this.state();
    if (state !== 'stopped') throw this.#failed('cannot be captured before it is stopped', state);
    await this.#endStopped();
    const backingFile = this.#directory.record.image;
    const source = { format: 'qcow2', path: this.#directory.file(INSTANCE_FILES.disk) } as const;
    return {
      formats: FORMAT_NAMES.filter(isConvertible),
      save: (format, path, options) => convertImage(source, format, path, { ...options, backingFile }),
    };
  }

  async destroy({ signal }: OperationOptions = {}): Promise<void> {
    signal?.throwIfAborted();
    await this.#directory.endMachine();
    await this.#directory.remove();
  }

  async #execute(command: string, args?: Readonly<Record<string, unknown>>): Promise<unknown> {
    return await executeQmp(this.#directory.file(INSTANCE_FILES.monitor), command, args);
  }

  /** Ends QEMU after the machine was switched off, because it holds the disk. */
  async #endStopped(): Promise<void> {
    await this.#directory.setPoweredOff();
    await this.#directory.endMachine();
  }

  #failed(what: string, state: InstanceState): ImageError {
    return new ImageError(
      'instance-failed',
      `instance ${this.id} of build ${this.buildId} ${what}: ${REASONS[state]}; check its console log`,
    );
  }
}

const REASONS: Readonly<Record<InstanceState, string>> = {
  starting: 'it is being launched',
  running: 'it is running',
  stopped: 'it is powered off',
  failed: 'its QEMU is suspended or has ended',
};

const STATUS = new JsonReader(objectOf({ status: TEXT }));

/** Handles a QEMU that ends during a query, which counts as not running. */
function unlessEnded(error: unknown): undefined {
  if (error instanceof ImageError) return;
  throw error;
}
