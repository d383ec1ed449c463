import {
  ImageError,
  type ImageRepository,
  type Instance,
  type InstanceProvider,
  type Logger,
  type StoredCapture,
} from '@nodepool-builder/image-builder';
import { imageIdFault, withTimeout } from '@nodepool-builder/image-builder/module-kit';
import { type InstanceClaim, type InstanceRecord, InstanceRecords } from './instance-records.ts';
import { endInstances } from './remains.ts';

/** Milliseconds between two scans. */
const INTERVAL = 5 * 60_000;

/** Time limit for the deletion of one resource, in seconds: it may hang, and the others wait for it. */
const TIME_LIMIT = 120;

/** Milliseconds after the start for which a resumable build may come back. */
const RESUME_PERIOD = 60 * 60_000;

/** Settings of {@link InstanceReaper.start}. */
export interface InstanceReaperOptions {
  /** Repository of the builds. */
  readonly repository: Pick<ImageRepository, 'recordDirectory' | 'images'>;
  /** Providers to scan, read before each scan. */
  readonly providers: () => Iterable<InstanceProvider>;
  readonly logger?: Logger;
}

/**
 * Deletes orphans: instances of builds that have died, kept instances whose time is over, instances without a record,
 * and snapshots whose image is gone. It scans at the start and every five minutes.
 */
export class InstanceReaper {
  readonly #options: InstanceReaperOptions;
  readonly #startedAt = Date.now();
  readonly #closing = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;

  private constructor(options: InstanceReaperOptions) {
    this.#options = options;
  }

  /** Starts the first scan. The caller closes the reaper. */
  static start(options: InstanceReaperOptions): InstanceReaper {
    const reaper = new InstanceReaper(options);
    void reaper.look();
    reaper.#timer = setInterval(() => void reaper.look(), INTERVAL).unref();
    return reaper;
  }

  /** Scans now, or joins the running scan. Failures are logged and retried by the next scan. */
  look(): Promise<void> {
    this.#looking ??= this.#look()
      .catch((error: unknown) => this.#tell('what is left on instances', error))
      .finally(() => {
        this.#looking = undefined;
      });
    return this.#looking;
  }

  /** Stops scanning. The next reaper deletes remaining orphans. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#closing.abort(new ImageError('build-aborted', 'the instance reaper is being closed'));
    await this.#looking;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #look(): Promise<void> {
    const { repository } = this.#options;
    const providers = new Map([...this.#options.providers()].map((provider) => [provider.name, provider]));
    for (const imageId of await new InstanceRecords(repository).imageIds()) {
      await this.#unlessFailing(`the instances of image ${imageId}`, (signal) =>
        this.#withClaim(imageId, (claim) => this.#settle(claim, providers, signal)),
      );
    }
    for (const provider of providers.values()) {
      const place = `provider ${provider.name}`;
      const listed = await this.#unlessFailing(`the instances of ${place}`, async (signal) => ({
        instances: await provider.list({ signal }),
        captures: (await provider.captures?.({ signal })) ?? [],
      }));
      for (const instance of listed?.instances ?? []) {
        await this.#unlessFailing(`instance ${instance.id} of ${place}`, (signal) =>
          this.#endUnknown(instance, provider, signal),
        );
      }
      for (const capture of listed?.captures ?? []) {
        await this.#unlessFailing(`image ${capture.externalId} of ${place}`, (signal) =>
          this.#discardUnknown(capture, provider, signal),
        );
      }
    }
  }

  /** Deletes the instances of a build that is not running, unless they are kept. */
  async #settle(
    claim: InstanceClaim,
    providers: ReadonlyMap<string, InstanceProvider>,
    signal: AbortSignal,
  ): Promise<void> {
    const entry = await claim.read();
    const { repository, logger } = this.#options;
    const { imageId } = claim;
    if (entry !== undefined && this.#isKept(entry)) return;
    const provider = entry && providers.get(entry.provider);
    if (entry !== undefined && provider === undefined) {
      logger?.error(
        `the instance of image ${imageId} in provider ${entry.provider} cannot be ended: the provider is not ` +
          'configured any more; configure it again, or end the instance by hand and remove what is remembered of ' +
          `it in ${new InstanceRecords(repository).directory}`,
      );
      return;
    }
    if (provider !== undefined) await endInstances(provider, imageId, { signal });
    await claim.remove();
    logger?.info(`image ${imageId}: what an earlier build of it left on instances is gone`);
  }

  /** Ends an instance without a record: its record is lost, or no build of this host launched it. */
  async #endUnknown(instance: Instance, { name }: InstanceProvider, signal: AbortSignal): Promise<void> {
    const { buildId, id } = instance;
    const { logger } = this.#options;
    const end = async (): Promise<void> => {
      await instance.destroy({ signal });
      logger?.warn(
        `instance ${id} of provider ${name} was for image ${buildId}, which nobody builds; it is ended`,
      );
    };
    if (imageIdFault(buildId) !== undefined) return await end();
    await this.#withClaim(buildId, async (claim) => {
      if ((await claim.read()) === undefined) await end();
    });
  }

  /** Deletes a snapshot whose image is gone and that no upload has claimed. */
  async #discardUnknown(
    { imageId, externalId }: StoredCapture,
    provider: InstanceProvider,
    signal: AbortSignal,
  ): Promise<void> {
    const { name } = provider;
    const { logger, repository } = this.#options;
    await this.#withClaim(imageId, async (claim) => {
      if ((await claim.read()) !== undefined) return;
      const { snapshots = [] } = repository.images.get(imageId) ?? {};
      if (snapshots.some((known) => known.provider === name && known.externalId === externalId)) return;
      // Listed again under the lock: an upload may have claimed it meanwhile.
      const now = (await provider.captures?.({ signal }))?.find((other) => other.externalId === externalId);
      if (now === undefined) return;
      await now.discard({ signal });
      logger?.info(
        `image ${externalId} of provider ${name}, a snapshot for image ${imageId}, is of no use; it is gone`,
      );
    });
  }

  #isKept({ phase, keptUntil, afterRestart }: InstanceRecord): boolean {
    if (phase === 'ending') return false;
    if (keptUntil !== undefined) return Date.now() < Date.parse(keptUntil);
    return afterRestart === 'resume' && Date.now() < this.#startedAt + RESUME_PERIOD;
  }

  /** Skips the instance of a running build. */
  async #withClaim(imageId: string, work: (claim: InstanceClaim) => Promise<void>): Promise<void> {
    const claim = new InstanceRecords(this.#options.repository).tryClaim(imageId);
    if (claim === undefined) return;
    try {
      await work(claim);
    } finally {
      claim.release();
    }
  }

  /** Undefined if the work fails, which is logged, or exceeds the time limit. */
  async #unlessFailing<T>(what: string, work: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    const { signal } = this.#closing;
    if (signal.aborted) return undefined;
    const late = (cause: unknown): never => {
      throw new ImageError('cleanup-failed', `it took longer than ${TIME_LIMIT} s`, { cause });
    };
    try {
      return await withTimeout(TIME_LIMIT, signal, work, late);
    } catch (error) {
      this.#tell(what, error);
      return undefined;
    }
  }

  /** Logs a failure, which the next scan retries. */
  #tell(what: string, error: unknown): void {
    if (this.#closing.signal.aborted) return;
    this.#options.logger?.error(`${what} could not be looked after: ${String(error)}`);
  }
}
