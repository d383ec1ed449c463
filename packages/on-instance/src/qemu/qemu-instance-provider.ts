import { mkdir, realpath } from 'node:fs/promises';
import { extname, join } from 'node:path';
import {
  ImageError,
  type ImageFormat,
  type InstanceProvider,
  type LaunchRequest,
  type OperationOptions,
} from '@nodepool-builder/image-builder';
import {
  type Accelerator,
  asImageError,
  checkSelfContained,
  formatOfExtension,
  formatRow,
  isConvertible,
  runCommand,
} from '@nodepool-builder/image-builder/module-kit';
import { writeConfigDrive } from './config-drive.ts';
import { type DirectBoot, INSTANCE_FILES, instanceArguments } from './instance-arguments.ts';
import { InstanceDirectory } from './instance-directory.ts';
import { QemuInstance } from './qemu-instance.ts';
import { startMachine } from './start-machine.ts';

/** How a {@link QemuInstanceProvider} is set up. */
export interface QemuInstanceProviderOptions {
  /** `providers[].name`. */
  readonly name: string;
  /**
   * Absolute path of the directory for the instances, with room for all that is written to their disks. It is made
   * if need be. One process at a time works with it, and nothing else lies there.
   */
  readonly directory: string;
  /** Memory of an instance, in MiB, unless more is asked for. Default 1024. */
  readonly memory?: number;
  /** Processors of an instance. Default 2. */
  readonly cpus?: number;
  /** Default: KVM, and if QEMU fails with it TCG. */
  readonly accelerator?: Accelerator;
  /** For base images that have no boot loader. Default: the BIOS boots from the disk. */
  readonly directBoot?: DirectBoot;
}

/**
 * Runs instances under QEMU on this host. Each has a directory of its own: its disk is an overlay on the base image,
 * which stays as it is; its key comes on a config drive; its port is forwarded to one on loopback.
 *
 * An instance outlives this process. It is known by its directory, which is there before QEMU starts, and in which
 * QEMU works.
 */
export class QemuInstanceProvider implements InstanceProvider {
  readonly name: string;
  readonly #options: QemuInstanceProviderOptions;
  readonly #instances = new Map<string, QemuInstance>();
  #ready: Promise<void> | undefined;

  constructor(options: QemuInstanceProviderOptions) {
    this.name = options.name;
    this.#options = options;
  }

  async launch(request: LaunchRequest, { signal }: OperationOptions = {}): Promise<QemuInstance> {
    signal?.throwIfAborted();
    await this.#prepare();
    const base = await baseImage(request);
    const record = { buildId: request.buildId, launchedAt: new Date().toISOString(), image: base.path };
    const directory = await InstanceDirectory.create(this.#options.directory, record, async (path, id) => {
      await writeConfigDrive(join(path, INSTANCE_FILES.configDrive), id, request);
      await createOverlay(base, path, signal);
    }).catch((error: unknown) => {
      throw asImageError(error, `launch for build ${request.buildId} in ${this.#options.directory}`);
    });
    const instance = this.#instance(directory);
    try {
      await this.#start(directory, request, signal);
      signal?.throwIfAborted();
    } catch (error) {
      await instance.destroy();
      throw error;
    }
    return instance;
  }

  async list({ signal }: OperationOptions = {}): Promise<readonly QemuInstance[]> {
    signal?.throwIfAborted();
    await this.#prepare();
    const directories = await InstanceDirectory.list(this.#options.directory);
    return directories.map((directory) => this.#instance(directory));
  }

  async #start(directory: InstanceDirectory, request: LaunchRequest, signal?: AbortSignal): Promise<void> {
    const { accelerator } = this.#options;
    try {
      await startMachine(directory, this.#arguments(request, accelerator ?? 'kvm'), signal);
    } catch (error) {
      const isFinal = accelerator !== undefined || !(error instanceof ImageError);
      if (isFinal || error.code !== 'launch-failed') throw error;
      await startMachine(directory, this.#arguments(request, 'tcg'), signal);
    }
  }

  #arguments({ buildId, port, minRam = 0 }: LaunchRequest, accelerator: Accelerator): string[] {
    const { memory = 1024, cpus = 2, directBoot } = this.#options;
    return instanceArguments({
      name: buildId,
      memory: Math.max(memory, minRam),
      cpus,
      port,
      accelerator,
      ...(directBoot && { directBoot }),
    });
  }

  /** There is one object for each instance: a QEMU talks to one client at a time. */
  #instance(directory: InstanceDirectory): QemuInstance {
    const known = this.#instances.get(directory.id);
    const instance = known ?? new QemuInstance(directory, () => this.#instances.delete(directory.id));
    this.#instances.set(directory.id, instance);
    return instance;
  }

  /** Once, before this process launches anything: what is half made then is nobody's. */
  async #prepare(): Promise<void> {
    const { directory } = this.#options;
    this.#ready ??= mkdir(directory, { recursive: true, mode: 0o700 }).then(() =>
      InstanceDirectory.removeHidden(directory),
    );
    try {
      await this.#ready;
    } catch (error) {
      this.#ready = undefined;
      throw asImageError(error, `provider ${this.name}: use of ${directory}`);
    }
  }
}

interface BaseImage {
  readonly path: string;
  readonly format: ImageFormat;
}

async function baseImage({ image, format }: LaunchRequest): Promise<BaseImage> {
  const known = format ?? formatOfExtension(extname(image).slice(1));
  if (known === undefined || !isConvertible(known)) {
    throw new ImageError(
      'format-unknown',
      `the base image "${image}" is in no format that QEMU reads; name one, or give the file its extension`,
    );
  }
  try {
    const base = { path: await realpath(image), format: known };
    if (known !== 'raw') await checkSelfContained(base); // QEMU would give the machine any file that it names
    return base;
  } catch (error) {
    if (error instanceof ImageError) throw error;
    throw new ImageError(
      'image-not-found',
      `the base image "${image}" cannot be read: ${(error as Error).message}; correct its path`,
      { cause: error },
    );
  }
}

/** Makes the disk that is written to instead of the base image. */
async function createOverlay(base: BaseImage, directory: string, signal?: AbortSignal): Promise<void> {
  const backing = ['-b', base.path, '-F', formatRow(base.format).qemuDriver ?? ''];
  const args = ['create', '-q', '-f', 'qcow2', ...backing, join(directory, INSTANCE_FILES.disk)];
  const { exitCode, lastLines } = await runCommand('qemu-img', args, {
    cwd: directory,
    ...(signal && { signal }),
  });
  if (exitCode === 0) return;
  throw new ImageError(
    'launch-failed',
    `no disk could be made over the base image "${base.path}": ${lastLines.join(' / ')}; mend the base image`,
  );
}
