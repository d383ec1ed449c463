import {
  DamagedRecordError,
  type DirectoryManifest,
  MANIFEST,
} from '@nodepool-builder/image-builder/internal';
import type { ObjectStore } from './object-store.ts';
import { externalIdOf } from './s3-keys.ts';

/** Max concurrent reads of manifests. */
const READS = 16;

/** A manifest and its image. */
export interface StoredImage {
  readonly externalId: string;
  readonly manifest: DirectoryManifest;
  /** True if the object has the size in the manifest. */
  readonly isWhole: boolean;
}

/** Manifests of a provider. */
export class StoredImages {
  readonly #store: ObjectStore;
  /** Manifests read so far, by key and ETag. Undefined for objects that are not a manifest. */
  readonly #read = new Map<string, DirectoryManifest | undefined>();

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  /** Lists images whose object is complete. */
  async whole(signal: AbortSignal): Promise<readonly StoredImage[]> {
    return (await this.all(signal)).filter(({ isWhole }) => isWhole);
  }

  async all(signal: AbortSignal): Promise<readonly StoredImage[]> {
    const { keys } = this.#store;
    const objects = new Map((await this.#store.list(keys.prefix, signal)).map((one) => [one.key, one]));
    const found: StoredImage[] = [];
    const versions = new Set<string>();
    const rest = objects.values();
    const read = async (): Promise<void> => {
      for (const { key, etag } of rest) {
        const externalId = keys.externalId(key);
        if (externalId === undefined) continue;
        const version = `${key} ${etag}`;
        versions.add(version);
        if (!this.#read.has(version)) this.#read.set(version, await this.manifest(externalId, signal));
        const manifest = this.#read.get(version);
        const size = objects.get(keys.image(externalId))?.size;
        if (manifest) found.push({ externalId, manifest, isWhole: size === manifest.size });
      }
    };
    await Promise.all(Array.from({ length: READS }, read));
    for (const version of this.#read.keys()) if (!versions.has(version)) this.#read.delete(version);
    return found.toSorted((one, other) => (one.externalId < other.externalId ? -1 : 1));
  }

  /** Reads the manifest of an image; undefined if it does not exist. An object that is not our manifest is ignored. */
  async manifest(externalId: string, signal: AbortSignal): Promise<DirectoryManifest | undefined> {
    const key = this.#store.keys.manifest(externalId);
    const text = await this.#store.read(key, signal);
    if (text === undefined) return undefined;
    try {
      const manifest = MANIFEST.parse(text, key);
      const { 'upload-id': uploadId, 'image-id': imageId, 'image-name': imageName, format } = manifest;
      const named = externalIdOf(this.#store.provider, { uploadId, imageId, imageName, format });
      if (named === externalId) return manifest;
      throw new DamagedRecordError(key, `it belongs to ${named}`);
    } catch (error) {
      const { message } = error as Error;
      this.#store.warn(`${message}; it is not a manifest, and is ignored`);
      return undefined;
    }
  }
}
