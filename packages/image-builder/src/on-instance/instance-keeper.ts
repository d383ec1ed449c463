import { ImageError } from '../errors.ts';
import { imageIdFault } from '../image-id.ts';
import type { Instance, InstanceProvider, StoredCapture } from '../instance/instance-provider.ts';
import type { ImageRepository } from '../repository.ts';
import type { Logger } from '../types.ts';
import type { InstanceClaim, InstanceEntry } from './ledger.ts';
import { endInstances } from './remains.ts';

/** Between two looks, in milliseconds. */
const INTERVAL = 5 * 60_000;

/** How long after the start a build that died is waited for, in milliseconds, where it would go on. */
const RESUME_PERIOD = 60 * 60_000;

/** What {@link InstanceKeeper.start} is given. */
export interface InstanceKeeperOptions {
  /** Whose builds the instances are for. */
  readonly repository: Pick<ImageRepository, 'instances' | 'images'>;
  /** Where there may be instances; asked before each look. */
  readonly providers: () => Iterable<InstanceProvider>;
  readonly logger?: Logger;
}

/**
 * Ends the instances that nobody needs any more: of builds of a process that died, kept ones whose time is over, and
 * those that no build remembers; and removes snapshots whose image is not there any more. It looks when it starts and
 * every five minutes.
 */
export class InstanceKeeper {
  readonly #options: InstanceKeeperOptions;
  readonly #startedAt = Date.now();
  readonly #closing = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;

  private constructor(options: InstanceKeeperOptions) {
    this.#options = options;
  }

  /** Its first look begins at once. Who starts it closes it. */
  static start(options: InstanceKeeperOptions): InstanceKeeper {
    const keeper = new InstanceKeeper(options);
    void keeper.look();
    keeper.#timer = setInterval(() => void keeper.look(), INTERVAL).unref();
    return keeper;
  }

  /** Looks now, unless it is looking: then it is that look. What fails is logged, and tried again the next time. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  /** Stops looking. Instances that are left are ended by the next one. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#closing.abort(new ImageError('build-aborted', 'the keeper of instances is being closed'));
    await this.#looking;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #look(): Promise<void> {
    const { repository } = this.#options;
    const providers = new Map([...this.#options.providers()].map((provider) => [provider.name, provider]));
    for (const imageId of await repository.instances.imageIds()) {
      await this.#unlessFailing(`image ${imageId}`, () =>
        this.#withClaim(imageId, (claim) => this.#settle(claim, providers)),
      );
    }
    for (const provider of providers.values()) {
      await this.#unlessFailing(`provider ${provider.name}`, async () => {
        for (const instance of await provider.list({ signal: this.#closing.signal })) {
          await this.#endUnknown(instance, provider);
        }
        for (const capture of (await provider.captures?.({ signal: this.#closing.signal })) ?? []) {
          await this.#discardUnknown(capture, provider);
        }
      });
    }
  }

  /** Ends what a build left that is not under way, unless it is kept. */
  async #settle(claim: InstanceClaim, providers: ReadonlyMap<string, InstanceProvider>): Promise<void> {
    const entry = await claim.read();
    const { repository, logger } = this.#options;
    const { imageId } = claim;
    if (entry !== undefined && this.#isKept(entry)) return;
    const provider = entry && providers.get(entry.provider);
    if (entry !== undefined && provider === undefined) {
      logger?.error(
        `the instance of image ${imageId} in provider ${entry.provider} cannot be ended: the provider is not ` +
          'configured any more; configure it again, or end the instance by hand and remove what is remembered of ' +
          `it in ${repository.instances.directory}`,
      );
      return;
    }
    const { signal } = this.#closing;
    if (provider !== undefined) {
      await endInstances(provider, imageId, { signal });
    }
    await claim.remove();
    logger?.info(`image ${imageId}: what an earlier build of it left on instances is gone`);
  }

  /** What no build remembers was never launched by one, or was launched by one whose record is lost. */
  async #endUnknown(instance: Instance, { name }: InstanceProvider): Promise<void> {
    const { buildId, id } = instance;
    const { logger } = this.#options;
    const end = async (): Promise<void> => {
      await instance.destroy({ signal: this.#closing.signal });
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
  async #discardUnknown({ imageId, externalId }: StoredCapture, provider: InstanceProvider): Promise<void> {
    const { name } = provider;
    const { logger, repository } = this.#options;
    await this.#withClaim(imageId, async (claim) => {
      if ((await claim.read()) !== undefined) return;
      const { snapshots = [] } = repository.images.get(imageId) ?? {};
      if (snapshots.some((known) => known.provider === name && known.externalId === externalId)) return;
      // Looked at anew, now that no upload can come in between: one may have taken it over.
      const { signal } = this.#closing;
      const now = (await provider.captures?.({ signal }))?.find((other) => other.externalId === externalId);
      if (now === undefined) return;
      await now.discard({ signal });
      logger?.info(
        `image ${externalId} of provider ${name}, a snapshot for image ${imageId}, is of no use; it is gone`,
      );
    });
  }

  #isKept({ phase, keptUntil, afterRestart }: InstanceEntry): boolean {
    if (phase === 'ending') return false;
    if (keptUntil !== undefined) return Date.now() < Date.parse(keptUntil);
    return afterRestart === 'resume' && Date.now() < this.#startedAt + RESUME_PERIOD;
  }

  /** Leaves alone what a build is at. */
  async #withClaim(imageId: string, work: (claim: InstanceClaim) => Promise<void>): Promise<void> {
    const claim = this.#options.repository.instances.tryClaim(imageId);
    if (claim === undefined) return;
    try {
      await work(claim);
    } finally {
      claim.release();
    }
  }

  async #unlessFailing(what: string, work: () => Promise<void>): Promise<void> {
    try {
      if (!this.#closing.signal.aborted) await work();
    } catch (error) {
      if (this.#closing.signal.aborted) return;
      this.#options.logger?.error(`the instances of ${what} could not be looked after: ${String(error)}`);
    }
  }
}
