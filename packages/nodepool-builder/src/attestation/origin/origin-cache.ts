import type { Upload } from '@nodepool-builder/image-manager';
import {
  describeUpload,
  earlierBuilds,
  type OriginSource,
  originOfBuild,
  proofOfUpload,
  uploadsWithImages,
} from './origin.ts';
import type { BuildOrigin, Proof, UploadOrigin } from './origin-record.ts';
import type { Keys } from './trusted-keys.ts';

/** Maximum numbers of builds and uploads whose origin is cached. */
const MOST_BUILDS = 50;
const MOST_UPLOADS = 5000;

/**
 * Caches the origins of builds and the proofs of uploads. Both depend only on the records and the trusted keys, because
 * a document is stored together with its record. Concurrent callers share one computation.
 */
export class OriginCache {
  readonly #builds = new LeastRecentlyUsed<BuildOrigin>(MOST_BUILDS);
  readonly #proofs = new LeastRecentlyUsed<Proof>(MOST_UPLOADS);

  async build(source: OriginSource, imageId: string): Promise<BuildOrigin> {
    const { state } = source;
    const build = state.builds.get(imageId);
    const key = JSON.stringify([
      build?.state,
      keyIdsOf(source),
      uploadsWithImages(state, imageId).map(({ id, externalId }) => [id, externalId]),
      // A package list is stored when its build ends, and deleted with the build's record.
      build && earlierBuilds(state, build).map(({ id }) => id),
    ]);
    return await this.#builds.get(imageId, key, () =>
      originOfBuild(source, imageId, (upload, attestations) =>
        this.#proof(source, upload, () => proofOfUpload(upload, attestations, source)),
      ),
    );
  }

  async upload(source: OriginSource, upload: Upload): Promise<UploadOrigin> {
    const proof = await this.#proof(source, upload, async () => {
      const attestations = await source.store.attestations(upload.imageId, upload.id);
      return await proofOfUpload(upload, attestations, source);
    });
    return describeUpload(upload, proof);
  }

  #proof(source: OriginSource, upload: Upload, verify: () => Promise<Proof>): Promise<Proof> {
    const { id, imageId, provider, externalId, state } = upload;
    const key = JSON.stringify([imageId, provider, externalId, state, keyIdsOf(source)]);
    return this.#proofs.get(id, key, verify);
  }
}

function keyIdsOf({ keys, withoutKeys = '' }: Keys): readonly string[] {
  return [withoutKeys, ...keys.map(({ keyId, file }) => `${keyId} ${file}`)];
}

/** Values by name, each valid for one key. The least recently used ones are dropped. */
class LeastRecentlyUsed<T> {
  readonly #limit: number;
  readonly #entries = new Map<string, { readonly key: string; readonly value: Promise<T> }>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  get(name: string, key: string, compute: () => Promise<T>): Promise<T> {
    const known = this.#entries.get(name);
    this.#entries.delete(name);
    const entry = known?.key === key ? known : { key, value: compute() };
    this.#entries.set(name, entry);
    if (entry !== known) {
      entry.value.catch(() => {
        if (this.#entries.get(name) === entry) this.#entries.delete(name);
      });
      for (const oldest of this.#entries.keys()) {
        if (this.#entries.size <= this.#limit) break;
        this.#entries.delete(oldest);
      }
    }
    return entry.value;
  }
}
