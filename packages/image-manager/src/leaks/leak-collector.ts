import type { ActContext } from '../acts/act-context.ts';
import { deleteFiles } from '../acts/delete.ts';
import { findStrayImages, locateUploads, type StrayImage } from './find-leaks.ts';
import { listProviders } from './list-providers.ts';
import { Sightings } from './sightings.ts';

/**
 * Looks at intervals for images that carry our mark and that no record stands for, and removes those that it sees
 * twice; and for images that were removed by somebody else.
 */
export class LeakCollector {
  readonly #context: ActContext;
  readonly #sightings = new Sightings();
  #nextLook = -Infinity;
  #looking: Promise<void> = Promise.resolve();
  #isLooking = false;
  /** Providers of which it was said that their images cannot be seen from here. */
  readonly #invisible = new Set<string>();

  constructor(context: ActContext) {
    this.#context = context;
  }

  /** Begins a look if it is time for one. `changed` is called when it has changed a record. */
  lookWhenDue(signal: AbortSignal, changed: () => void): void {
    const { elapsed, logger, configuration } = this.#context;
    if (this.#isLooking || signal.aborted || elapsed() < this.#nextLook) return;
    this.#isLooking = true;
    this.#looking = this.#look(signal)
      .catch((error: unknown) => {
        if (!signal.aborted) logger.warn(`the look for leaks broke off: ${String(error)}`);
      })
      .finally(() => {
        this.#isLooking = false;
        // From the end on: however long a look takes, what it saw at last is looked at again an interval later.
        this.#nextLook = elapsed() + configuration().timing.leakInterval * 1000;
        changed();
      });
  }

  /** Resolves when no look is under way. */
  async idle(): Promise<void> {
    await this.#looking;
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { state, owner, now, provider, logger, configuration } = this.#context;
    const begun = now();
    const listings = await listProviders({ providers: configuration().providers, provider, logger }, signal);
    const { offered } = await this.#context.observe();
    const whereabouts = locateUploads(state.uploads.values(), listings, begun);
    const strays = findStrayImages({ owner, state, listings, offered: offered.deletes });
    const leaks = new Map(strays.filter(({ isOurs }) => isOurs).map((stray) => [keyOf(stray), stray]));
    const vanished = new Map(whereabouts.vanished.map((upload) => [`vanished ${upload.id}`, upload]));
    const due = this.#sightings.look([...leaks.keys(), ...vanished.keys()]);
    for (const { id } of whereabouts.appeared) await state.updateUpload(id, { seen: true });
    this.#tellInvisible(whereabouts.invisible);
    for (const key of due) {
      const upload = vanished.get(key);
      const leak = leaks.get(key);
      if (upload !== undefined) await this.#forget(upload.id);
      if (leak !== undefined) await this.#remove(leak, signal);
    }
  }

  async #forget(uploadId: string): Promise<void> {
    const { state, logger } = this.#context;
    const upload = state.uploads.get(uploadId);
    if (upload?.state !== 'ready') return;
    logger.warn(`upload ${uploadId}: image ${upload.externalId} is gone from ${upload.provider}`);
    await state.updateUpload(uploadId, { state: 'deleted', error: 'somebody removed it from the provider' });
  }

  async #remove(leak: StrayImage, signal: AbortSignal): Promise<void> {
    const { provider, logger } = this.#context;
    try {
      logger.warn(`leak: ${describe(leak)} is in no record; it is removed`);
      if (leak.place === 'builder') await deleteFiles(this.#context, leak.imageId, signal);
      else await provider(leak.provider)?.delete(leak.image.externalId, { signal });
    } catch (error) {
      if (signal.aborted) throw error;
      const reason = error instanceof Error ? error.message : String(error);
      logger.warn(`leak: ${describe(leak)} cannot be removed now, it will be tried again: ${reason}`);
    }
  }

  #tellInvisible(uploads: readonly { readonly provider: string; readonly id: string }[]): void {
    for (const { provider, id } of uploads) {
      if (this.#invisible.has(provider)) continue;
      this.#invisible.add(provider);
      this.#context.logger.warn(
        `provider ${provider} does not list upload ${id}: what builders put there cannot be seen, nor deleted, from here; give this host the same credentials, or the same directory`,
      );
    }
  }
}

function keyOf(stray: StrayImage): string {
  return stray.place === 'provider'
    ? `provider ${stray.provider} ${stray.image.externalId}`
    : `builder ${stray.imageId}`;
}

function describe(leak: StrayImage): string {
  return leak.place === 'provider'
    ? `image ${leak.image.externalId} (${leak.image.imageId}) in provider ${leak.provider}`
    : `image ${leak.imageId} at a builder`;
}
