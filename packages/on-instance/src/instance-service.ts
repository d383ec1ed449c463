import type {
  BuilderEntry,
  BuilderService,
  BuilderSite,
  ImageRepository,
} from '@nodepool-builder/image-builder';
import { InstanceReaper } from './instance-reaper.ts';
import { InstanceRecords } from './instance-records.ts';
import type { OnInstance } from './settings.ts';

/** Runs the reaper in a daemon that builds on instances or has records of instances. */
export class InstanceService implements BuilderService<OnInstance> {
  readonly #site: BuilderSite;
  /** Names of providers in the records of earlier processes. */
  readonly #recorded: readonly string[];
  #reaper: InstanceReaper | undefined;
  #isClosed = false;

  private constructor(site: BuilderSite, recorded: readonly string[]) {
    this.#site = site;
    this.#recorded = recorded;
    site.repository.on('removed', ({ snapshots }) => {
      if (snapshots !== undefined) this.#reap(); // a snapshot that no upload has claimed is an orphan now
    });
  }

  static async start(site: BuilderSite): Promise<InstanceService> {
    return new InstanceService(site, await recordedProviders(site.repository));
  }

  configure(entries: readonly BuilderEntry<OnInstance>[]): void {
    if (entries.length > 0 || this.#recorded.length > 0) this.#reap();
  }

  async lockSnapshots(imageId: string, signal: AbortSignal): Promise<() => void> {
    return (await new InstanceRecords(this.#site.repository).claim(imageId, signal)).release;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.#reaper?.close();
  }

  /** Starts the reaper, or requests another scan. */
  #reap(): void {
    if (this.#isClosed) return;
    const reaper = this.#reaper;
    this.#reaper ??= InstanceReaper.start({
      repository: this.#site.repository,
      providers: () => this.#site.instanceProviders(this.#recorded),
      logger: this.#site.logger('nodepool.builder'),
    });
    // A running scan may have missed the change.
    void reaper?.look().then(() => reaper.look());
  }
}

/** Names of the providers that may have instances or snapshots of earlier processes. */
export async function recordedProviders(
  repository: Pick<ImageRepository, 'recordDirectory' | 'images'>,
): Promise<readonly string[]> {
  const instances = new InstanceRecords(repository);
  const names = [...repository.images.values()].flatMap(({ snapshots = [] }) =>
    snapshots.map(({ provider }) => provider),
  );
  for (const imageId of await instances.imageIds()) {
    const claim = instances.tryClaim(imageId);
    const entry = await claim?.read().finally(() => claim.release());
    if (entry !== undefined) names.push(entry.provider);
  }
  return names;
}
