import {
  ImageError,
  type ImageRepository,
  type Instance,
  type InstanceProvider,
  imageIdFault,
  type Logger,
  type StoredCapture,
} from '@nodepool-builder/image-builder';
import { withTimeout } from '@nodepool-builder/image-builder/module-kit';
import { type InstanceClaim, type InstanceRecord, InstanceRecords } from './instance-records.ts';
import { endInstances } from './remains.ts';

/** Between two looks, in milliseconds. */
const INTERVAL = 5 * 60_000;

/** How long one thing may take to go, in seconds: it may never, and what comes behind it waits. */
const TIME_LIMIT = 120;

/** How long after the start a build that died is waited for, in milliseconds, where it would go on. */
const RESUME_PERIOD = 60 * 60_000;

/** What {@link InstanceReaper.start} is given. */
export interface InstanceReaperOptions {
  /** Whose builds the instances are for. */
  readonly repository: Pick<ImageRepository, 'recordDirectory' | 'images'>;
  /** Where there may be instances; asked before each look. */
  readonly providers: () => Iterable<InstanceProvider>;
  readonly logger?: Logger;
}

/**
 * Ends the instances that nobody needs any more: of builds of a process that died, kept ones whose time is over, and
 * those that no build remembers; and removes snapshots whose image is not there any more. It looks when it starts and
 * every five minutes.
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

  /** Its first look begins at once. Who starts it closes it. */
  static start(options: InstanceReaperOptions): InstanceReaper {
    const reaper = new InstanceReaper(options);
    void reaper.look();
    reaper.#timer = setInterval(() => void reaper.look(), INTERVAL).unref();
    return reaper;
  }

  /** Looks now, unless it is looking: then it is that look. What fails is logged, and tried again the next time. */
  look(): Promise<void> {
    this.#looking ??= this.#look()
      .catch((error: unknown) => this.#tell('what is left on instances', error))
      .finally(() => {
        this.#looking = undefined;
      });
    return this.#looking;
  }

  /** Stops looking. Instances that are left are ended by the next one. */
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

  /** Ends what a build left that is not under way, unless it is kept. */
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

  /** What no build remembers was never launched by one, or was launched by one whose record is lost. */
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

  /** A snapshot is of use as long as its image is there, if no upload has taken it over. */
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
      // Looked at anew, now that no upload can come in between: one may have taken it over.
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

  /** Leaves alone what a build is at. */
  async #withClaim(imageId: string, work: (claim: InstanceClaim) => Promise<void>): Promise<void> {
    const claim = new InstanceRecords(this.#options.repository).tryClaim(imageId);
    if (claim === undefined) return;
    try {
      await work(claim);
    } finally {
      claim.release();
    }
  }

  /** Undefined if it fails, which is told, or takes too long. */
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

  /** Says what could not be looked after; another look tries again. */
  #tell(what: string, error: unknown): void {
    if (this.#closing.signal.aborted) return;
    this.#options.logger?.error(`${what} could not be looked after: ${String(error)}`);
  }
}
