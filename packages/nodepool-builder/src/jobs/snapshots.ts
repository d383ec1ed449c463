import type {
  ClaimRequest,
  ImageProvider,
  ImageRepository,
  Snapshot,
  UploadResult,
} from '@nodepool-builder/image-builder';
import { InstanceRecords } from '@nodepool-builder/on-instance';

/**
 * The images that lie in a provider as snapshots. Each belongs to its image here until an upload claims it, and from then
 * on to the upload. Which of the two it is, the snapshot itself says by its properties, so that no crash makes it unknown.
 * One without an upload is removed by the keeper of instances, who looks for those whose image is not here.
 */
export class Snapshots {
  readonly #repository: ImageRepository;

  constructor(repository: ImageRepository) {
    this.#repository = repository;
  }

  /** The snapshot of an image in a provider, if it can be claimed there. */
  find(imageId: string, provider: ImageProvider): Snapshot | undefined {
    if (!('claim' in provider)) return undefined;
    const { snapshots } = this.#repository.get(imageId) ?? {};
    return snapshots?.find((snapshot) => snapshot.provider === provider.name);
  }

  /**
   * Claims a snapshot for an upload. The keeper of instances does not remove it meanwhile.
   *
   * @returns undefined if it is gone, or another upload has it
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
