import {
  type BuilderEntry,
  type BuilderService,
  type BuilderSite,
  ImageError,
  type ImageRepository,
  type Instance,
  type InstanceProvider,
  type Logger,
  type StoredCapture,
} from '@nodepool-builder/image-builder';
import { imageIdError, withTimeout } from '@nodepool-builder/image-builder/internal';
import {
  destroyInstances,
  type InstanceClaim,
  type InstanceRecord,
  InstanceRecords,
  recordedProviders,
} from './instance-records.ts';
import type { OnInstance } from './on-instance-settings.ts';

/** Milliseconds between two scans. */
const INTERVAL = 5 * 60_000;

/** Time limit for the deletion of one resource, in seconds. It may hang while the others wait for it. */
const TIME_LIMIT = 120;

/** Milliseconds after the start during which a resumable build may be assigned again. */
const RESUME_PERIOD = 60 * 60_000;

/** The part of a daemon that an {@link InstanceReaper} needs. */
export interface ReaperSite extends Pick<BuilderSite, 'instanceProviders' | 'logger' | 'onOrphanDeleted'> {
  /** Repository of the builds. */
  readonly repository: Pick<ImageRepository, 'recordDirectory' | 'images' | 'on'>;
}

/**
 * Deletes orphans: instances of builds that have died, kept instances whose time is over, instances without a record,
 * and snapshots whose image is gone. In a daemon that builds on instances or has records of instances, it scans at the
 * start and every five minutes.
 */
export class InstanceReaper implements BuilderService<OnInstance> {
  readonly #site: ReaperSite;
  readonly #records: InstanceRecords;
  readonly #logger: Logger;
  /** Names of providers in the records of earlier processes. */
  readonly #recorded: readonly string[];
  /** On the monotonic clock, because the clock of a host may be set after its start. */
  readonly #startedAt = performance.now();
  readonly #closing = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #scanning: Promise<void> | undefined;

  private constructor(site: ReaperSite, recorded: readonly string[]) {
    this.#site = site;
    this.#records = new InstanceRecords(site.repository);
    this.#logger = site.logger('nodepool.builder');
    this.#recorded = recorded;
    site.repository.on('removed', ({ snapshots }) => {
      if (snapshots !== undefined) this.#reap(); // a snapshot that no upload has claimed is now an orphan
    });
  }

  static async start(site: ReaperSite): Promise<InstanceReaper> {
    return new InstanceReaper(site, await recordedProviders(site.repository));
  }

  async configure(entries: readonly BuilderEntry<OnInstance>[]): Promise<void> {
    const earlier = this.#scanning;
    if (entries.length > 0 || this.#recorded.length > 0) this.#reap();
    await earlier;
  }

  async lockSnapshots(imageId: string, signal: AbortSignal): Promise<() => void> {
    return (await this.#records.claim(imageId, signal)).release;
  }

  /** Scans now, or joins the running scan. Failures are logged and retried by the next scan. */
  scan(): Promise<void> {
    this.#scanning ??= this.#scan()
      .catch((error: unknown) => this.#logFailure('the records of instances', error))
      .finally(() => {
        this.#scanning = undefined;
      });
    return this.#scanning;
  }

  /** Stops scanning. The next reaper deletes remaining orphans. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    this.#closing.abort(new ImageError('build-aborted', 'the instance reaper is being closed'));
    await this.#scanning;
  }

  /** Starts scanning, or requests another scan. */
  #reap(): void {
    if (this.#closing.signal.aborted) return;
    if (this.#timer === undefined) {
      this.#timer = setInterval(() => void this.scan(), INTERVAL).unref();
      void this.scan();
    } else {
      void this.scan().then(() => this.scan()); // a running scan may have missed the change
    }
  }

  async #scan(): Promise<void> {
    const listed = this.#site.instanceProviders(this.#recorded);
    const providers = new Map([...listed].map((provider) => [provider.name, provider]));
    for (const imageId of await this.#records.imageIds()) {
      await this.#unlessFailing(`the instances of image ${imageId}`, (signal) =>
        this.#withClaim(imageId, (claim) => this.#settle(claim, providers, signal)),
      );
    }
    for (const provider of providers.values()) await this.#scanProvider(provider);
  }

  async #scanProvider(provider: InstanceProvider): Promise<void> {
    const place = `provider ${provider.name}`;
    const listed = await this.#unlessFailing(`the instances of ${place}`, async (signal) => ({
      instances: await provider.list({ signal }),
      captures: (await provider.captures?.({ signal })) ?? [],
    }));
    for (const instance of listed?.instances ?? []) {
      await this.#unlessFailing(`instance ${instance.id} of ${place}`, (signal) =>
        this.#destroyOrphan(instance, provider, signal),
      );
    }
    for (const capture of listed?.captures ?? []) {
      await this.#unlessFailing(`image ${capture.externalId} of ${place}`, (signal) =>
        this.#discardOrphan(capture, provider, signal),
      );
    }
  }

  /** Deletes the instances of a build that is not running, unless they are kept. */
  async #settle(
    claim: InstanceClaim,
    providers: ReadonlyMap<string, InstanceProvider>,
    signal: AbortSignal,
  ): Promise<void> {
    const entry = await claim.read();
    const { imageId } = claim;
    if (entry !== undefined && this.#isKept(entry)) return;
    const provider = entry && providers.get(entry.provider);
    if (entry !== undefined && provider === undefined) {
      this.#logger.error(
        `cannot delete the instance of image ${imageId} in provider ${entry.provider}: the provider is no longer ` +
          'configured; configure it again, or delete the instance by hand and remove its record in ' +
          this.#records.directory,
      );
      return;
    }
    if (provider !== undefined) await destroyInstances(provider, imageId, { signal });
    await claim.remove();
    if (provider !== undefined) this.#site.onOrphanDeleted?.(provider.name);
    this.#logger.info(`image ${imageId}: deleted the instances of an earlier build`);
  }

  /** Deletes an instance without a record, because its record is lost or no build of this host launched it. */
  async #destroyOrphan(instance: Instance, { name }: InstanceProvider, signal: AbortSignal): Promise<void> {
    const { buildId, id } = instance;
    const destroy = async (): Promise<void> => {
      await instance.destroy({ signal });
      this.#site.onOrphanDeleted?.(name);
      this.#logger.warn(
        `deleted instance ${id} of provider ${name}: no build of image ${buildId} is running`,
      );
    };
    if (imageIdError(buildId) !== undefined) return await destroy();
    await this.#withClaim(buildId, async (claim) => {
      if ((await claim.read()) === undefined) await destroy();
    });
  }

  /** Deletes a snapshot whose image is gone and that no upload has claimed. */
  async #discardOrphan(
    { imageId, externalId }: StoredCapture,
    provider: InstanceProvider,
    signal: AbortSignal,
  ): Promise<void> {
    const { name } = provider;
    await this.#withClaim(imageId, async (claim) => {
      if ((await claim.read()) !== undefined) return;
      const { snapshots = [] } = this.#site.repository.images.get(imageId) ?? {};
      if (snapshots.some((known) => known.provider === name && known.externalId === externalId)) return;
      // Listed again under the lock, because an upload may have claimed it in the meantime.
      const now = (await provider.captures?.({ signal }))?.find((other) => other.externalId === externalId);
      if (now === undefined) return;
      await now.discard({ signal });
      this.#site.onOrphanDeleted?.(name);
      this.#logger.info(
        `deleted image ${externalId} of provider ${name}: a snapshot of image ${imageId}, which is gone`,
      );
    });
  }

  #isKept({ phase, keptUntil, afterRestart }: InstanceRecord): boolean {
    if (phase === 'ending') return false;
    if (keptUntil !== undefined) return Date.now() < Date.parse(keptUntil);
    return afterRestart === 'resume' && performance.now() < this.#startedAt + RESUME_PERIOD;
  }

  /** Runs work with the claim of an image. Skips the instance of a running build. */
  async #withClaim(imageId: string, work: (claim: InstanceClaim) => Promise<void>): Promise<void> {
    const claim = this.#records.tryClaim(imageId);
    if (claim === undefined) return;
    try {
      await work(claim);
    } finally {
      claim.release();
    }
  }

  /** Returns undefined if the work fails, which is logged, or exceeds the time limit. */
  async #unlessFailing<T>(what: string, work: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    const { signal } = this.#closing;
    if (signal.aborted) return undefined;
    const late = (cause: unknown): Error =>
      new ImageError('cleanup-failed', `it took longer than ${TIME_LIMIT} s`, { cause });
    try {
      return await withTimeout(TIME_LIMIT, signal, work, late);
    } catch (error) {
      this.#logFailure(what, error);
      return undefined;
    }
  }

  /** Logs a failure, which the next scan retries. */
  #logFailure(what: string, error: unknown): void {
    if (this.#closing.signal.aborted) return;
    this.#logger.error(`cannot check ${what} for orphans: ${String(error)}`);
  }
}
