import type { AttestationDocument } from '@nodepool-builder/image-builder';
import { MAX_ATTESTATION_SIZE } from '@nodepool-builder/image-builder/internal';
import { cloudError } from '@nodepool-builder/image-builder/plugin';
import type { ObjectStore, StoredObject } from './object-store.ts';

/** Attestations next to images, one object each. */
export class KeptAttestations {
  readonly #store: ObjectStore;

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  /**
   * Reads the attestations of an image, by name. @throws CloudError `image-failed` for an object that is not an
   * attestation
   */
  async read(externalId: string, signal: AbortSignal): Promise<readonly AttestationDocument[]> {
    const documents: AttestationDocument[] = [];
    for (const { key, size } of await this.#list(externalId, signal)) {
      if (size > MAX_ATTESTATION_SIZE) {
        const reason = `it has ${size} bytes, more than 1 MiB, so it is not an attestation; remove it`;
        throw cloudError('image-failed', `object ${this.#store.bucket}/${key}`, reason);
      }
      const text = await this.#store.read(key, signal);
      const name = key.slice(this.#store.keys.attestations(externalId).length);
      if (text !== undefined) documents.push({ name, text }); // An undefined text means that the object was removed meanwhile.
    }
    return documents;
  }

  async write(
    externalId: string,
    documents: readonly AttestationDocument[],
    signal: AbortSignal,
  ): Promise<void> {
    for (const { name, text } of documents) {
      await this.#store.write(this.#store.keys.attestations(externalId) + name, text, signal);
    }
  }

  async remove(externalId: string, signal: AbortSignal): Promise<void> {
    for (const { key } of await this.#list(externalId, signal)) await this.#store.remove(key, signal);
  }

  async #list(externalId: string, signal: AbortSignal): Promise<readonly StoredObject[]> {
    const objects = await this.#store.list(this.#store.keys.attestations(externalId), signal);
    return objects.filter(({ key }) => key.endsWith('.json'));
  }
}
