import { access, constants, mkdir, realpath } from 'node:fs/promises';
import { extname, join } from 'node:path';
import {
  type Accelerator,
  type CheckResult,
  type ImageDescription,
  ImageError,
  type InstanceProvider,
  type LaunchRequest,
  type Logger,
  type OperationOptions,
  type ProviderModule,
} from '@nodepool-builder/image-builder';
import {
  asImageError,
  attempt,
  checkKvm,
  checkProgram,
  checkSelfContained,
  type DiskFile,
  environmentIn,
  fileDigest,
  formatOfExtension,
  formatRow,
  isConvertible,
  QEMU,
  runCommand,
  unlessMissing,
} from '@nodepool-builder/image-builder/internal';
import { poll, signalOf } from '@nodepool-builder/image-builder/plugin';
import { instanceArguments, QEMU_SETTINGS, type QemuSettings } from './instance-arguments.ts';
import { INSTANCE_FILES, InstanceDirectory, writeConfigDrive } from './instance-directory.ts';
import { QemuInstance } from './qemu-instance.ts';
import { startMachine } from './start-machine.ts';

export interface QemuInstanceProviderOptions extends QemuSettings {
  /** `providers[].name`. */
  readonly name: string;
  /**
   * Absolute path of the directory for the instances and their disks. It is created if missing. Only one process may
   * use it, and for nothing else.
   */
  readonly directory: string;
  /** Timeout for a kernel to write to its console under KVM, in milliseconds. Default: one minute. */
  readonly consoleTimeout?: number;
  readonly logger?: Logger;
}

/** Default of {@link QemuInstanceProviderOptions.consoleTimeout}. */
const CONSOLE_TIMEOUT = 60_000;

/** Maximum seconds between two checks of a console. */
const CONSOLE_INTERVAL = 0.1;

/**
 * Runs instances under QEMU on this host. The disk of an instance is an overlay on the base image, its SSH key is on a
 * config drive, and its port is forwarded to a loopback port.
 *
 * An instance outlives this process. It is identified by its directory, which exists before QEMU starts and is QEMU's
 * working directory.
 */
export class QemuInstanceProvider implements InstanceProvider {
  readonly name: string;
  readonly #directory: string;
  readonly #settings: QemuSettings;
  readonly #consoleTimeout: number;
  readonly #logger: Logger | undefined;
  #ready: Promise<void> | undefined;

  constructor(options: QemuInstanceProviderOptions) {
    const { name, directory, consoleTimeout = CONSOLE_TIMEOUT, logger, ...settings } = options;
    this.name = name;
    this.#directory = directory;
    this.#consoleTimeout = consoleTimeout;
    this.#logger = logger;
    this.#settings = settings;
  }

  async launch(request: LaunchRequest, options: OperationOptions = {}): Promise<QemuInstance> {
    const signal = signalOf(options);
    signal.throwIfAborted();
    await this.#prepare();
    const base = await baseImage(request);
    const record = { buildId: request.buildId, launchedAt: new Date().toISOString(), image: base.path };
    const directory = await InstanceDirectory.create(this.#directory, record, async (path, id) => {
      await writeConfigDrive(join(path, INSTANCE_FILES.configDrive), id, request);
      await createOverlay(base, path, signal);
    }).catch((error: unknown) => {
      throw asImageError(error, `launch for build ${request.buildId} in ${this.#directory}`);
    });
    const instance = new QemuInstance(directory);
    try {
      await this.#start(directory, request, base, signal);
      signal.throwIfAborted();
    } catch (error) {
      await instance.destroy();
      signal.throwIfAborted();
      throw error;
    }
    return instance;
  }

  async describeImage(image: string, options: OperationOptions = {}): Promise<ImageDescription | undefined> {
    const path = await unlessMissing(realpath(image));
    if (path === undefined) return undefined;
    const limit = Number.MAX_SAFE_INTEGER;
    const sha256 = await fileDigest(path, { limit, signal: signalOf(options) });
    return { digest: sha256 === undefined ? {} : { sha256 }, annotations: { path } };
  }

  async *diagnose(): AsyncIterable<CheckResult> {
    const { accelerator, 'direct-boot': directBoot } = this.#settings;
    for (const program of [QEMU, 'qemu-img']) yield checkProgram(program, `by provider ${this.name}`);
    yield await checkKvm(accelerator);
    for (const path of [directBoot?.kernel, directBoot?.initrd]) {
      if (path === undefined) continue;
      const result = await attempt(`file ${path}`, new AbortController().signal, () =>
        access(path, constants.R_OK),
      );
      yield result.problem ?? { subject: `file ${path}`, status: 'ok', message: 'can be read' };
    }
  }

  async list({ signal }: OperationOptions = {}): Promise<readonly QemuInstance[]> {
    signal?.throwIfAborted();
    await this.#prepare();
    const directories = await InstanceDirectory.list(this.#directory);
    return directories.map((directory) => new QemuInstance(directory));
  }

  async #start(
    directory: InstanceDirectory,
    request: LaunchRequest,
    base: DiskFile,
    signal: AbortSignal,
  ): Promise<void> {
    const { accelerator } = this.#settings;
    const start = (kind: Accelerator): Promise<void> =>
      startMachine(directory, instanceArguments(this.#settings, request, kind), signal);
    try {
      await start(accelerator ?? 'kvm');
    } catch (error) {
      const isFinal = accelerator !== undefined || !(error instanceof ImageError);
      if (isFinal || error.code !== 'launch-failed') throw error;
      this.#logger?.warn(`${error.message}; restarting it without KVM`);
      await start('tcg');
      return;
    }
    if (accelerator !== undefined || (await this.#isBooting(directory, signal))) return;
    const seconds = Math.round(this.#consoleTimeout / 1000);
    this.#logger?.warn(
      `the machine of build ${request.buildId} wrote nothing to its console in ${seconds} s: KVM does not work on this ` +
        'host; restarting it without KVM, which takes many times as long (accelerator: tcg does so at once)',
    );
    await directory.endMachine();
    await createOverlay(base, directory.path, signal);
    await start('tcg');
  }

  /**
   * Returns false if a kernel that writes to the serial console has not done so in time. Under some hypervisors KVM can
   * be opened but runs nothing. Other machines may never write there.
   */
  async #isBooting(directory: InstanceDirectory, signal: AbortSignal): Promise<boolean> {
    if (!/\bconsole=ttyS0\b/.test(this.#settings['direct-boot']?.['command-line'] ?? '')) return true;
    const deadline = performance.now() + this.#consoleTimeout;
    const look = async (): Promise<boolean | undefined> => {
      if ((await directory.tail(INSTANCE_FILES.console)) !== '') return true;
      return performance.now() > deadline ? false : undefined;
    };
    return await poll(look, { interval: CONSOLE_INTERVAL, signal });
  }

  /** Creates the directory, or removes incomplete instances of earlier processes from it, once. */
  async #prepare(): Promise<void> {
    this.#ready ??= mkdir(this.#directory, { recursive: true, mode: 0o700 }).then(() =>
      InstanceDirectory.removeHidden(this.#directory),
    );
    try {
      await this.#ready;
    } catch (error) {
      this.#ready = undefined;
      throw asImageError(error, `provider ${this.name}: use of ${this.#directory}`);
    }
  }
}

/** `type: qemu`: instances on this host. */
export const QEMU_MODULE: ProviderModule<typeof QEMU_SETTINGS> = {
  type: 'qemu',
  settings: QEMU_SETTINGS,
  instances: {
    bootsFiles: true,
    open: (entry, { directory, logger }) => new QemuInstanceProvider({ ...entry, directory, logger }),
  },
};

async function baseImage({ image, format }: LaunchRequest): Promise<DiskFile> {
  const known = format ?? formatOfExtension(extname(image).slice(1));
  if (known === undefined || !isConvertible(known)) {
    throw new ImageError(
      'format-unknown',
      `cannot find out the format of the base image "${image}"; name a format that QEMU reads, or give the file its extension`,
    );
  }
  try {
    const base = { path: await realpath(image), format: known };
    if (known !== 'raw') await checkSelfContained(base); // otherwise the machine could read any file of this host
    return base;
  } catch (error) {
    if (error instanceof ImageError) throw error;
    throw new ImageError(
      'image-not-found',
      `cannot read the base image "${image}": ${(error as Error).message}; correct its path`,
      { cause: error },
    );
  }
}

/** Creates the disk of an instance. */
async function createOverlay(base: DiskFile, directory: string, signal: AbortSignal): Promise<void> {
  const backing = ['-b', base.path, '-F', formatRow(base.format).qemuDriver ?? ''];
  const args = ['create', '-q', '-f', 'qcow2', ...backing, join(directory, INSTANCE_FILES.disk)];
  const { exitCode, decisiveLines } = await runCommand('qemu-img', args, {
    cwd: directory,
    env: environmentIn(directory),
    signal,
  });
  if (exitCode === 0) return;
  throw new ImageError(
    'launch-failed',
    `cannot create a disk on the base image "${base.path}": ${decisiveLines.join(' / ')}; repair the base image`,
  );
}
