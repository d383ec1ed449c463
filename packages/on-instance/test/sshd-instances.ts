import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { copyFile, cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type CapturedImage,
  type CaptureRequest,
  ImageError,
  type Instance,
  type InstanceAddress,
  type InstanceProvider,
  type InstanceState,
  type LaunchRequest,
  type OperationOptions,
  type Probe,
  type StoredCapture,
} from '@nodepool-builder/image-builder';
import { waitForPort } from '@nodepool-builder/image-builder/internal';
import { makeDisk, type Sshd, startSshd } from '../../../test/fixtures/sshd.ts';

/** Behaviour of a {@link SshdInstances} that differs from the normal case. */
export interface SshdInstancesOptions {
  readonly sftp?: boolean;
  /** True if its instances run without any service that responds. */
  readonly isDead?: boolean;
  /** True if the power button does nothing. */
  readonly ignoresButton?: boolean;
  /** True if captured images stay in it. */
  readonly makesSnapshots?: boolean;
  /** Console output of the instances. */
  readonly console?: string;
  /** True if they write their host key to the console, as cloud-init does. */
  readonly announcesHostKey?: boolean;
  /** Called before an instance is created. */
  readonly onLaunch?: (request: LaunchRequest) => Promise<void>;
}

/** A provider whose instances are sshds on this host, with directories as disks. A captured disk is a tar. */
export class SshdInstances implements InstanceProvider {
  readonly name = 'sshds';
  readonly directory: string;
  readonly options: SshdInstancesOptions;
  readonly launched: SshdInstance[];
  /** Ids of stored captured images, with their image-ids. */
  readonly snapshots: Map<string, string>;
  #isCrashed = false;

  /** @param directory directory of the disks */
  constructor(directory: string, options: SshdInstancesOptions = {}, before?: SshdInstances) {
    this.directory = directory;
    this.options = options;
    this.launched = before?.launched ?? [];
    this.snapshots = before?.snapshots ?? new Map();
  }

  /** Returns the provider of the next process. From then on, calls of this one do not affect the instances. */
  crash(): SshdInstances {
    this.#isCrashed = true;
    return new SshdInstances(this.directory, this.options, this);
  }

  /** Instances that are not destroyed. */
  get instances(): readonly SshdInstance[] {
    return this.launched.filter(({ isDestroyed }) => !isDestroyed);
  }

  /** Instance that was launched last. */
  get instance(): SshdInstance {
    const last = this.launched.at(-1);
    if (last === undefined) throw new Error('nothing was launched');
    return last;
  }

  async launch(request: LaunchRequest, { signal }: OperationOptions = {}): Promise<SshdInstance> {
    await this.options.onLaunch?.(request);
    const instance = new SshdInstance(this, request);
    this.launched.push(instance);
    await instance.boot();
    if (signal?.aborted === true) await instance.destroy();
    signal?.throwIfAborted();
    return instance;
  }

  list({ signal }: OperationOptions = {}): Promise<readonly SshdInstance[]> {
    signal?.throwIfAborted();
    return Promise.resolve(this.#isCrashed ? [] : this.instances);
  }

  captures(): Promise<readonly StoredCapture[]> {
    if (this.#isCrashed) return Promise.resolve([]);
    const stored = [...this.snapshots].map(([externalId, imageId]) => ({
      externalId,
      imageId,
      capturedAt: new Date(),
      formats: [],
      save: () => Promise.reject(new Error('the image does not exist')),
      discard: () => {
        this.snapshots.delete(externalId);
        return Promise.resolve();
      },
    }));
    return Promise.resolve(stored);
  }

  async close(): Promise<void> {
    for (const instance of this.instances) await instance.destroy();
  }
}

/** A small machine. */
export class SshdInstance implements Instance {
  readonly id: string = randomUUID();
  readonly buildId: string;
  readonly launchedAt: Date = new Date();
  readonly request: LaunchRequest;
  /** Its root directory. */
  readonly disk: string;
  isDestroyed = false;
  /** Number of presses of the power button. */
  pushes = 0;
  readonly #provider: SshdInstances;
  #sshd: Sshd | undefined;
  #isPoweredOff = false;

  constructor(provider: SshdInstances, request: LaunchRequest) {
    this.buildId = request.buildId;
    this.request = request;
    this.disk = join(provider.directory, this.id);
    this.#provider = provider;
  }

  get sshd(): Sshd {
    if (this.#sshd === undefined) throw new Error('it does not run');
    return this.#sshd;
  }

  /** Copies the base image to the disk, and starts. */
  async boot(): Promise<void> {
    const { isDead, sftp = true } = this.#provider.options;
    await makeDisk(this.disk, this.request.publicKey);
    await mkdir(this.request.image, { recursive: true });
    await cp(this.request.image, this.disk, { recursive: true });
    if (isDead !== true) this.#sshd = await startSshd(this.disk, { sftp });
  }

  async read(name: string): Promise<string> {
    return await readFile(join(this.disk, name), 'utf8');
  }

  state(): Promise<InstanceState> {
    return Promise.resolve(this.#state());
  }

  address({ signal }: OperationOptions = {}): Promise<InstanceAddress> {
    signal?.throwIfAborted();
    return Promise.resolve({ host: '127.0.0.1', port: this.#sshd?.port ?? 1 });
  }

  async waitReachable(probe: Probe, { signal }: OperationOptions = {}): Promise<InstanceAddress> {
    const address = await this.address();
    const check = (): Promise<void> => {
      if (this.#state() !== 'running') throw this.#failed('cannot be reached');
      return Promise.resolve();
    };
    await waitForPort(address, probe, check, signal);
    return address;
  }

  async consoleLog(): Promise<string> {
    const { console = '', announcesHostKey } = this.#provider.options;
    if (announcesHostKey !== true) return console;
    const key = await this.read('etc/ssh/ssh_host_ed25519_key.pub');
    return `${console}-----BEGIN SSH HOST KEY KEYS-----\r\n${key.trim()}\r\n-----END SSH HOST KEY KEYS-----\r\n`;
  }

  async screenshot(path: string): Promise<void> {
    await writeFile(path, 'PNG');
  }

  async stop({ signal }: OperationOptions = {}): Promise<void> {
    this.pushes += 1;
    if (this.#provider.options.ignoresButton !== true) {
      this.#isPoweredOff = true;
      await this.#sshd?.kill();
    }
    await this.waitStopped({ ...(signal && { signal }) });
  }

  async waitStopped({ signal }: OperationOptions = {}): Promise<void> {
    signal?.throwIfAborted();
    if (this.#state() === 'stopped') return;
    const never = new Promise<never>(() => {});
    await Promise.race([this.#sshd?.ended ?? never, signal === undefined ? never : once(signal, 'abort')]);
    signal?.throwIfAborted();
    if (this.#state() !== 'stopped') throw this.#failed('did not power off');
  }

  async capture({ imageId }: CaptureRequest): Promise<CapturedImage> {
    if (this.#state() !== 'stopped') throw this.#failed('is not stopped');
    const tar = join(this.#provider.directory, `${this.id}.tar`);
    execFileSync('tar', ['-cf', tar, '-C', this.disk, '.']);
    const externalId = `snapshot-${randomUUID()}`;
    const { makesSnapshots } = this.#provider.options;
    if (makesSnapshots === true) this.#provider.snapshots.set(externalId, imageId);
    return {
      ...(makesSnapshots === true && { externalId }),
      formats: ['raw'],
      save: (_format, path) => copyFile(tar, path),
    };
  }

  async destroy(): Promise<void> {
    await this.#sshd?.kill();
    this.isDestroyed = true;
  }

  #state(): InstanceState {
    if (this.isDestroyed) return 'failed';
    if (this.#isPoweredOff) return 'stopped';
    if (this.#sshd === undefined || this.#sshd.isRunning) return 'running';
    return this.#sshd.isPoweredOff ? 'stopped' : 'failed';
  }

  #failed(what: string): ImageError {
    return new ImageError('instance-failed', `instance ${this.id} ${what}: it is ${this.#state()}`);
  }
}
