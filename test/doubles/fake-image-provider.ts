import { createReadStream } from 'node:fs';
import {
  type AttestationDocument,
  ImageError,
  type ImageFormat,
  type OperationOptions,
  type ProviderImage,
  type UploadRequest,
  type UploadResult,
} from '@nodepool-builder/image-builder';
import { foreignImage } from '@nodepool-builder/image-builder/internal';
import {
  type CloudImage,
  CloudImages,
  type CloudUpload,
  cloudImage,
} from '@nodepool-builder/image-builder/plugin';

/** A provider in memory, which reads images but does not store them. Subclasses delay calls or make them fail. */
export class FakeImageProvider extends CloudImages {
  /** Uploaded images by external id. */
  readonly images: Map<string, ProviderImage> = new Map();
  /** External ids of images from other tools. */
  readonly foreign = new Set<string>();
  readonly #requests = new Map<string, UploadRequest>();
  readonly #documents = new Map<string, Map<string, AttestationDocument>>();

  constructor(options: { readonly name?: string; readonly formats?: readonly ImageFormat[] } = {}) {
    const { name = 'fake', formats = ['qcow2', 'raw'] } = options;
    super({ entry: { name }, formats });
  }

  override async list({ signal }: OperationOptions = {}): Promise<readonly ProviderImage[]> {
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

  protected async listImages(): Promise<readonly CloudImage[]> {
    return Array.from(this.images.values(), (image) => this.#describe(image));
  }

  protected override async getImage(externalId: string): Promise<CloudImage | undefined> {
    const image = this.images.get(externalId);
    if (image !== undefined) return this.#describe(image);
    return this.foreign.has(externalId) ? foreignImage(externalId) : undefined;
  }

  protected async makeImage({ request, signal, onProgress }: CloudUpload): Promise<UploadResult> {
    const { uploadId, imageId, imageName, file } = request;
    let done = 0;
    for await (const chunk of createReadStream(file.path) as AsyncIterable<Buffer>) {
      signal.throwIfAborted();
      done += chunk.length;
      onProgress({ done, total: file.size });
    }
    signal.throwIfAborted();
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

  protected async removeImage({ externalId }: Pick<CloudImage, 'externalId'>): Promise<void> {
    this.images.delete(externalId);
    this.#documents.delete(externalId);
  }

  protected override async removeUpload(uploadId: string): Promise<void> {
    await this.removeImage({ externalId: `${this.name}/${uploadId}` });
  }

  #describe(image: ProviderImage): CloudImage {
    const { externalId, imageName, imageId, uploadId = '', uploadedAt } = image;
    const { externalName, builtAt, metadata = {} } = this.#requests.get(externalId) ?? {};
    return cloudImage({
      externalId,
      name: externalName ?? `${imageName}-${imageId}`,
      status: 'active',
      isComplete: true,
      tagged: { provider: this.name, imageName, imageId, uploadId, ...(builtAt && { builtAt }) },
      properties: metadata,
      createdAt: uploadedAt,
    });
  }

  #documentsOf(externalId: string): Map<string, AttestationDocument> {
    if (this.images.has(externalId)) return this.#documents.get(externalId) ?? new Map();
    throw new ImageError('image-not-found', `there is no image ${externalId}`);
  }
}
