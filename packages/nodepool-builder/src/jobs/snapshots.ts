import type {
  ClaimRequest,
  ImageProvider,
  ImageRepository,
  Logger,
  OperationOptions,
  Snapshot,
  UploadResult,
} from '@nodepool-builder/image-builder';

/** What {@link Snapshots} works with. */
export interface SnapshotsOptions {
  readonly repository: ImageRepository;
  /** Called when something is remembered that nobody needs any more in a provider. */
  readonly onUnneeded: () => void;
  readonly logger: Logger;
}

/**
 * The images that lie in a provider as snapshots. Each belongs to its image here until an upload claims it: from then on
 * to the upload, and goes with that. Which of the two it is says the snapshot itself, so that a crash cannot make it
 * unknown: one that bears no upload's id goes when its image is deleted here, and not by the time of a claim.
 */
export class Snapshots {
  readonly #options: SnapshotsOptions;
  /** Images that a job deletes. */
  readonly #deleting = new Set<string>();

  constructor(options: SnapshotsOptions) {
    this.#options = options;
    const { repository, logger } = options;
    repository.on('removed', ({ id, snapshots }) => {
      if (this.#deleting.has(id)) return;
      this.#release(id, snapshots, () => Promise.resolve()).catch((error: unknown) => {
        logger.error(`image ${id} is gone, and its snapshot may stay: ${String(error)}`);
      });
    });
  }

  /** The snapshot of an image in a provider. */
  find(imageId: string, provider: ImageProvider): Snapshot | undefined {
    if (provider.claim === undefined) return undefined;
    const snapshots = this.#options.repository.get(imageId)?.snapshots ?? [];
    return snapshots.find((snapshot) => snapshot.provider === provider.name);
  }

  /** Claims a snapshot for an upload; undefined if it is gone, or another upload has it. */
  async claim(
    provider: ImageProvider,
    { externalId }: Snapshot,
    request: ClaimRequest,
    signal: AbortSignal,
  ): Promise<UploadResult | undefined> {
    const { instances } = this.#options.repository;
    const claim = await instances.claim(request.imageId, signal);
    try {
      return await provider.claim?.(externalId, request, { signal });
    } finally {
      claim.release();
    }
  }

  /** Deletes an image here, and has its snapshot go unless an upload has claimed it. Throws as the repository does. */
  async deleteImage(imageId: string, { signal }: Required<Pick<OperationOptions, 'signal'>>): Promise<void> {
    const { repository } = this.#options;
    this.#deleting.add(imageId);
    try {
      const { snapshots } = repository.get(imageId) ?? {};
      await this.#release(imageId, snapshots, () => repository.delete(imageId), signal);
    } finally {
      this.#deleting.delete(imageId);
    }
  }

  /**
   * Remembers the snapshot as what an instance left that is not needed any more, and then removes the files: the keeper of
   * instances, which goes by what is remembered, looks whether the image is still here.
   */
  async #release(
    imageId: string,
    [snapshot]: readonly Snapshot[] = [],
    remove: () => Promise<void>,
    signal: AbortSignal = new AbortController().signal,
  ): Promise<void> {
    if (snapshot === undefined) return await remove();
    const { repository, onUnneeded } = this.#options;
    const claim = await repository.instances.claim(imageId, signal);
    try {
      await claim.write({
        imageId,
        imageName: repository.get(imageId)?.name ?? '',
        provider: snapshot.provider,
        phase: 'ending',
        stepsDone: 0,
        since: new Date().toISOString(),
        afterRestart: 'destroy',
        recipe: '',
      });
      await remove();
    } finally {
      claim.release();
    }
    onUnneeded();
  }
}
