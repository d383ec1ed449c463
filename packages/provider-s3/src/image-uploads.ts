import { stat } from 'node:fs/promises';
import type { Checksums, UploadRequest } from '@nodepool-builder/image-builder';
import {
  checkAttestationName,
  type DirectoryManifest,
  MANIFEST,
} from '@nodepool-builder/image-builder/internal';
import type { CloudUpload, UploadPart } from '@nodepool-builder/image-builder/plugin';
import { KeptAttestations } from './attestations.ts';
import { BucketRecords, type UploadRecord } from './bucket-records.ts';
import { foreignObject } from './latest-pointers.ts';
import {
  abortMultiparts,
  hasFile,
  isMadeBy,
  lastPartAt,
  type MultipartUpload,
  sendParts,
  startMultipart,
} from './multipart-upload.ts';
import type { ObjectStore, StoredObject } from './object-store.ts';
import type { StoredImages } from './stored-images.ts';

/** Creates the objects of images, and removes the objects of unfinished uploads. */
export class ImageUploads {
  readonly attestations: KeptAttestations;
  readonly #store: ObjectStore;
  readonly #images: StoredImages;
  readonly #records: BucketRecords;
  readonly #concurrency: number;

  /** @param concurrency max concurrent parts of an upload */
  constructor(store: ObjectStore, images: StoredImages, concurrency: number) {
    this.attestations = new KeptAttestations(store);
    this.#store = store;
    this.#images = images;
    this.#records = new BucketRecords(store);
    this.#concurrency = concurrency;
  }

  /** Creates the object of an image, its attestations and its manifest, unless they exist. */
  async make(running: CloudUpload, externalId: string): Promise<void> {
    try {
      await this.#make(running, externalId);
    } catch (error) {
      // Another process may have finished the same upload, and aborted the multipart upload of this process.
      if (!(await this.#isDone(externalId, running.signal).catch(() => false))) throw error;
    }
  }

  /** Removes an unfinished upload. Keeps a finished image. */
  async remove(uploadId: string, signal: AbortSignal): Promise<void> {
    const record = await this.#records.read(uploadId, signal);
    if (record === undefined) return;
    const { 'external-id': externalId } = record;
    await abortMultiparts({ store: this.#store, key: this.#store.keys.image(externalId), signal });
    if ((await this.#images.manifest(externalId, signal)) === undefined) {
      await this.removeObject(externalId, uploadId, signal);
    }
    await this.#records.remove(uploadId, signal);
  }

  /** Removes the object and the attestations of an upload. Keeps objects that came from elsewhere. */
  async removeObject(externalId: string, uploadId: string, signal: AbortSignal): Promise<void> {
    const key = this.#store.keys.image(externalId);
    const object = await this.#store.head(key, signal);
    if (object !== undefined && isMadeBy(uploadId, object)) await this.#store.remove(key, signal);
    else if (object !== undefined) this.#store.warn(foreignObject(this.#store.bucket, key).message);
    await this.attestations.remove(externalId, signal);
  }

  /** Lists the unfinished uploads. */
  async listParts(signal: AbortSignal): Promise<UploadPart[]> {
    const parts: UploadPart[] = [];
    for (const { object, record } of await this.#records.all(signal)) {
      const { 'upload-id': uploadId, 'external-id': externalId } = record;
      const changedAt = await this.#lastChange(object, record, signal);
      parts.push({
        uploadId,
        subject: `object ${this.#store.keys.image(externalId)} (unfinished)`,
        changedAt: new Date(changedAt),
        remove: async (again) => {
          const now = (await this.#records.all(again)).find((each) => each.object.key === object.key);
          if (now?.object.etag !== object.etag) return false;
          if ((await this.#lastChange(now.object, now.record, again)) !== changedAt) return false;
          await this.remove(uploadId, again);
          return true;
        },
      });
    }
    return parts;
  }

  async #make({ request, ...running }: CloudUpload, externalId: string): Promise<void> {
    const { uploadId, imageId, imageName, file, builtAt, metadata = {} } = request;
    const { signal } = running;
    const key = this.#store.keys.image(externalId);
    const [store, concurrency] = [this.#store, this.#concurrency];
    const upload: MultipartUpload = { ...running, store, key, uploadId, file, concurrency };
    if (!(await this.#isDone(externalId, signal))) {
      const built = builtAt ?? (await stat(file.path)).mtime;
      for (const { name } of request.attestations ?? []) checkAttestationName(name);
      const checksums = await this.#send(request, externalId, upload);
      await this.attestations.write(externalId, request.attestations ?? [], signal);
      const uploaded = new Date();
      const manifest: DirectoryManifest = {
        'image-id': imageId,
        'image-name': imageName,
        'upload-id': uploadId,
        format: file.format,
        size: file.size,
        ...checksums,
        built: (built > uploaded ? uploaded : built).toISOString(),
        uploaded: uploaded.toISOString(),
        metadata,
      };
      await this.#store.write(this.#store.keys.manifest(externalId), MANIFEST.text(manifest), signal);
    }
    // If a response was lost, there may be another multipart upload.
    await abortMultiparts(upload);
    await this.#records.remove(uploadId, signal);
  }

  /** Returns whether an image is complete. Its key identifies the upload. */
  async #isDone(externalId: string, signal: AbortSignal): Promise<boolean> {
    const manifest = await this.#images.manifest(externalId, signal);
    if (manifest === undefined) return false;
    return (await this.#store.head(this.#store.keys.image(externalId), signal))?.size === manifest.size;
  }

  /** Creates the object of an image, unless an earlier attempt has created it. */
  async #send(request: UploadRequest, externalId: string, upload: MultipartUpload): Promise<Checksums> {
    const { uploadId, file, shared = false } = request;
    const { key, signal } = upload;
    const object = await this.#store.head(key, signal);
    if (object !== undefined && !isMadeBy(uploadId, object)) throw foreignObject(this.#store.bucket, key);
    const manifestKey = this.#store.keys.manifest(externalId);
    if ((await this.#store.head(manifestKey, signal)) !== undefined) {
      if ((await this.#images.manifest(externalId, signal)) === undefined)
        throw foreignObject(this.#store.bucket, manifestKey);
      // The object is missing or its size differs. An image must never have another file's manifest.
      await this.#store.remove(manifestKey, signal);
    }
    if (object !== undefined && file.checksums !== undefined && hasFile(upload, object))
      return file.checksums;
    const earlier = await this.#records.read(uploadId, signal);
    const known = earlier?.['multipart-id'];
    const isSame = earlier?.['external-id'] === externalId && earlier.sha256 === file.checksums?.sha256;
    const isOpaque = earlier?.['opaque-etags'] ?? false;
    // If two processes send the same part, it keeps the ETag of the later one, and the other process cannot complete
    // the upload.
    const mayResume = isSame && !(shared && isOpaque);
    if (mayResume && known !== undefined && (await lastPartAt(upload, known)) !== undefined) {
      return await sendParts(upload, { id: known, hasOpaqueEtags: isOpaque });
    }
    if (earlier !== undefined && !shared) await this.remove(uploadId, signal);
    const record: UploadRecord = {
      'upload-id': uploadId,
      'external-id': externalId,
      begun: new Date().toISOString(),
      ...(file.checksums && { sha256: file.checksums.sha256 }),
    };
    await this.#records.write(record, signal);
    const multipart = await startMultipart(upload);
    const { id, hasOpaqueEtags } = multipart;
    await this.#records.write({ ...record, 'multipart-id': id, 'opaque-etags': hasOpaqueEtags }, signal);
    return await sendParts(upload, multipart);
  }

  /** Returns the time of an unfinished upload's last change, in milliseconds. */
  async #lastChange(
    { changedAt }: StoredObject,
    { 'external-id': externalId, 'multipart-id': id }: UploadRecord,
    signal: AbortSignal,
  ): Promise<number> {
    const multipart = { store: this.#store, key: this.#store.keys.image(externalId), signal };
    const part = id === undefined ? undefined : await lastPartAt(multipart, id);
    return Math.max(changedAt.getTime(), part ?? 0);
  }
}
