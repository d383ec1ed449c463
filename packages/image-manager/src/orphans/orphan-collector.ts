import { errorMessage } from '@nodepool-builder/image-builder/internal';
import type { Upload } from '../records.ts';
import { deleteFiles } from '../tasks/delete.ts';
import type { TaskContext } from '../tasks/tasks.ts';
import {
  compareUploads,
  listProvider,
  type UnrecordedImage,
  type UploadPresence,
  unrecordedAtBuilders,
  unrecordedInProvider,
} from './find-orphans.ts';

/**
 * Scans providers and builders at intervals. Deletes orphans that two consecutive scans have found. Marks uploads as
 * missing that two consecutive scans have not found, and as ready once they are listed again.
 */
export class OrphanCollector {
  readonly #context: TaskContext;
  /** Keys of the orphans and vanished uploads that the last scan found. */
  #found: ReadonlySet<string> = new Set();
  /** Time of the next scan on the monotonic clock; Infinity while a scan is running. */
  #nextScan = -Infinity;
  #scanning: Promise<void> = Promise.resolve();
  /** Providers that have had the warning about invisible uploads. */
  readonly #warned = new Set<string>();

  constructor(context: TaskContext) {
    this.#context = context;
  }

  /** Starts a scan if one is due. Calls `changed` at its end. */
  scanWhenDue(signal: AbortSignal, changed: () => void): void {
    const { elapsed, logger, configuration } = this.#context;
    if (signal.aborted || elapsed() < this.#nextScan) return;
    this.#nextScan = Infinity;
    this.#scanning = this.#scan(signal)
      .catch((error: unknown) => {
        if (!signal.aborted) logger.warn(`the scan for orphans failed: ${String(error)}`);
      })
      .finally(() => {
        // The interval starts at the end of a scan, so that a slow scan is followed by a full pause.
        this.#nextScan = elapsed() + configuration().timing.orphanScanInterval * 1000;
        changed();
      });
  }

  /** Resolves when no scan is running. */
  async idle(): Promise<void> {
    await this.#scanning;
  }

  async #scan(signal: AbortSignal): Promise<void> {
    const { state, owner, now, fleet, configuration, onEvent } = this.#context;
    const { builds, uploads } = state;
    const unrecorded: UnrecordedImage[] = [];
    const presences: UploadPresence[] = [];
    // Providers are listed one after the other, so that only one listing, which may be long, is in memory.
    for (const { name } of configuration().providers) {
      const begun = now();
      const listing = await listProvider(name, this.#context, signal);
      if (listing === undefined) continue;
      unrecorded.push(...unrecordedInProvider(listing, { owner, builds, uploads }));
      presences.push(compareUploads(uploads.values(), listing, begun));
    }
    const { offered } = await fleet.status();
    unrecorded.push(...unrecordedAtBuilders(offered.deletes, { owner, builds, uploads }));
    const corrections = new Map<string, () => Promise<void>>();
    const orphans = unrecorded.filter(({ isOurs }) => isOurs);
    onEvent?.({ kind: 'scanned', orphans });
    for (const image of orphans) {
      corrections.set(describe(image), () => this.#delete(image, signal));
    }
    for (const { id } of presences.flatMap(({ vanished }) => vanished))
      corrections.set(`upload ${id}`, () => this.#markMissing(id));
    const before = this.#found;
    this.#found = new Set(corrections.keys());
    for (const upload of presences.flatMap(({ appeared }) => appeared)) await this.#markListed(upload);
    this.#warnOfInvisible(presences.flatMap(({ invisible }) => invisible));
    for (const [key, correct] of corrections) if (before.has(key)) await correct();
  }

  async #markMissing(uploadId: string): Promise<void> {
    const { state, logger } = this.#context;
    const upload = state.uploads.get(uploadId);
    if (upload?.state !== 'ready') return;
    await state.updateUpload(uploadId, { state: 'missing' });
    logger.warn(
      `upload ${uploadId}: ${upload.provider} no longer lists image ${upload.externalId}; uploading its build again`,
    );
  }

  async #markListed({ id }: Upload): Promise<void> {
    const { state, logger } = this.#context;
    const upload = state.uploads.get(id);
    if (upload?.state === 'ready') await state.updateUpload(id, { seen: true });
    if (upload?.state !== 'missing') return; // it may have been deleted in the meantime
    await state.updateUpload(id, { state: 'ready' });
    logger.info(`upload ${id}: ${upload.provider} lists image ${upload.externalId} again; it is ready`);
  }

  async #delete(orphan: UnrecordedImage, signal: AbortSignal): Promise<void> {
    const { provider, fleet, logger, onEvent } = this.#context;
    try {
      logger.warn(`orphan: ${describe(orphan)} has no record; deleting it`);
      if (orphan.location === 'builder') await deleteFiles(fleet, orphan.imageId, signal);
      else await provider(orphan.provider)?.delete(orphan.image.externalId, { signal });
      onEvent?.({ kind: 'orphan', orphan, isDeleted: true });
    } catch (error) {
      if (signal.aborted) throw error;
      onEvent?.({ kind: 'orphan', orphan, isDeleted: false });
      logger.warn(`orphan: cannot delete ${describe(orphan)}; the next scan retries: ${errorMessage(error)}`);
    }
  }

  #warnOfInvisible(uploads: readonly { readonly provider: string; readonly id: string }[]): void {
    for (const { provider, id } of uploads) {
      if (this.#warned.has(provider)) continue;
      this.#warned.add(provider);
      this.#context.logger.warn(
        `provider ${provider} does not list upload ${id}: this host can neither see nor delete ` +
          'what the builders upload there; give it the same credentials, or the same directory',
      );
    }
  }
}

function describe(unrecorded: UnrecordedImage): string {
  if (unrecorded.location === 'builder') return `image ${unrecorded.imageId} at a builder`;
  const { provider, image } = unrecorded;
  return `image ${image.externalId} (${image.imageId}) in provider ${provider}`;
}
