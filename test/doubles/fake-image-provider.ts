import { createReadStream } from 'node:fs';
import {
  type AttestationDocument,
  type ImageCandidate,
  ImageError,
  type ImageFilter,
  type ImageFormat,
  type ImageProvider,
  type OperationOptions,
  type ProviderImage,
  splitTags,
  type UploadRequest,
  type UploadResult,
} from '@nodepool-builder/image-builder';

/** A provider in memory: it reads the data of images but does not store it. A subclass delays calls, or makes them fail. */
export class FakeImageProvider implements ImageProvider {
  readonly name: string;
  readonly formats: readonly ImageFormat[];
  /** Uploaded images by external id. */
  readonly images: Map<string, ProviderImage> = new Map();
  readonly #requests = new Map<string, UploadRequest>();
  readonly #documents = new Map<string, Map<string, AttestationDocument>>();

  constructor(options: { readonly name?: string; readonly formats?: readonly ImageFormat[] } = {}) {
    this.name = options.name ?? 'fake';
    this.formats = options.formats ?? ['qcow2', 'raw'];
  }

  async upload(request: UploadRequest, options: OperationOptions = {}): Promise<UploadResult> {
    const { signal, onProgress } = options;
    const { uploadId, imageId, imageName, file } = request;
    signal?.throwIfAborted();
    let done = 0;
    for await (const chunk of createReadStream(file.path) as AsyncIterable<Buffer>) {
      signal?.throwIfAborted();
      done += chunk.length;
      onProgress?.({ done, total: file.size });
    }
    signal?.throwIfAborted();
    const externalId = `${this.name}/${uploadId}`;
    this.images.set(externalId, {
      externalId,
      uploadId,
      imageId,
      imageName,
      format: file.format,
      size: done,
      ...(file.checksums && { checksums: file.checksums }),
      uploadedAt: new Date(),
    });
    this.#requests.set(externalId, request);
    const documents = this.#documents.get(externalId) ?? new Map<string, AttestationDocument>();
    for (const document of request.attestations ?? []) documents.set(document.name, document);
    this.#documents.set(externalId, documents);
    return { externalId };
  }

  async discard(uploadId: string, options: OperationOptions = {}): Promise<void> {
    await this.delete(`${this.name}/${uploadId}`, options);
  }

  async delete(externalId: string, { signal }: OperationOptions = {}): Promise<void> {
    signal?.throwIfAborted();
    this.images.delete(externalId);
    this.#documents.delete(externalId);
  }

  async list({ signal }: OperationOptions = {}): Promise<readonly ProviderImage[]> {
    signal?.throwIfAborted();
    return [...this.images.values()];
  }

  async getAttestations(externalId: string): Promise<readonly AttestationDocument[]> {
    return [...this.#documentsOf(externalId).values()];
  }

  async addAttestations(externalId: string, documents: readonly AttestationDocument[]): Promise<void> {
    const known = this.#documentsOf(externalId);
    for (const document of documents) known.set(document.name, document);
  }

  async findImages(_filter: ImageFilter, options: OperationOptions = {}): Promise<readonly ImageCandidate[]> {
    return (await this.list(options)).map(({ externalId, imageName, imageId, uploadedAt }) => {
      const { externalName, builtAt, metadata = {} } = this.#requests.get(externalId) ?? {};
      return {
        externalId,
        name: externalName ?? `${imageName}-${imageId}`,
        imageName,
        status: 'active',
        isUsable: true,
        isOwn: true,
        ...(metadata.architecture !== undefined && { architecture: metadata.architecture }),
        tags: splitTags(metadata.tags),
        properties: metadata,
        createdAt: uploadedAt,
        ...(builtAt !== undefined && { builtAt }),
      };
    });
  }

  #documentsOf(externalId: string): Map<string, AttestationDocument> {
    if (this.images.has(externalId)) return this.#documents.get(externalId) ?? new Map();
    throw new ImageError('image-not-found', `there is no image ${externalId}`);
  }
}
