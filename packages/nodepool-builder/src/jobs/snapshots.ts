import type {
  ClaimRequest,
  ImageProvider,
  ImageRepository,
  Snapshot,
  UploadResult,
} from '@nodepool-builder/image-builder';
import { InstanceRecords } from '@nodepool-builder/on-instance';

/**
 * Images that a provider already has as snapshots. A snapshot belongs to its image on this host until an upload claims
 * it, and then to the upload. Its own properties name the owner, so that a crash loses nothing. The instance reaper
 * deletes snapshots without an upload whose image is gone.
 */
export class Snapshots {
  readonly #repository: ImageRepository;

  constructor(repository: ImageRepository) {
    this.#repository = repository;
  }

  /** Returns the snapshot of an image that can be claimed in a provider. */
  find(imageId: string, provider: ImageProvider): Snapshot | undefined {
    if (!('claim' in provider)) return undefined;
    const { snapshots } = this.#repository.get(imageId) ?? {};
    return snapshots?.find((snapshot) => snapshot.provider === provider.name);
  }

  /**
   * Claims a snapshot for an upload. The instance reaper does not delete it meanwhile.
   *
   * @returns undefined if the snapshot is gone or belongs to another upload
   */
  async claim(
    provider: ImageProvider,
    { externalId }: Snapshot,
    request: ClaimRequest,
    signal: AbortSignal,
  ): Promise<UploadResult | undefined> {
    const turn = await new InstanceRecords(this.#repository).claim(request.imageId, signal);
    try {
      return await provider.claim?.(externalId, request, { signal });
    } finally {
      turn.release();
    }
  }
}
