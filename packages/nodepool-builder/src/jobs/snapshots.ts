import type {
  BuilderService,
  ClaimRequest,
  ImageProvider,
  ImageRepository,
  Snapshot,
  UploadResult,
} from '@nodepool-builder/image-builder';

/**
 * Images that a provider already has as snapshots. A snapshot belongs to its image on this host until an upload claims
 * it, and then to the upload. Its own properties name the owner, so that a crash loses nothing. The service of
 * its builder deletes a snapshot without an upload once its image is gone.
 */
export class Snapshots {
  readonly #repository: ImageRepository;
  readonly #services: Iterable<Pick<BuilderService<unknown>, 'lockSnapshots'>>;

  constructor(
    repository: ImageRepository,
    services: Iterable<Pick<BuilderService<unknown>, 'lockSnapshots'>>,
  ) {
    this.#repository = repository;
    this.#services = services;
  }

  /** Returns the snapshot of an image that can be claimed in a provider. */
  find(imageId: string, provider: ImageProvider): Snapshot | undefined {
    if (!('claim' in provider)) return undefined;
    const { snapshots } = this.#repository.get(imageId) ?? {};
    return snapshots?.find((snapshot) => snapshot.provider === provider.name);
  }

  /**
   * Claims a snapshot for an upload. No service deletes it meanwhile.
   *
   * @returns undefined if the snapshot is gone or belongs to another upload
   */
  async claim(
    provider: ImageProvider,
    { externalId }: Snapshot,
    request: ClaimRequest,
    signal: AbortSignal,
  ): Promise<UploadResult | undefined> {
    const releases: (() => void)[] = [];
    try {
      for (const service of this.#services) {
        const release = await service.lockSnapshots?.(request.imageId, signal);
        if (release !== undefined) releases.push(release);
      }
      return await provider.claim?.(externalId, request, { signal });
    } finally {
      for (const release of releases) release();
    }
  }
}
