import type {
  ImageFormat,
  ImageProvider,
  OperationOptions,
  ProviderImage,
  UploadRequest,
  UploadResult,
} from '@nodepool-builder/image-builder';
import type { CloudCall, CloudImage } from './cloud-double.ts';

/** Sends a request to the double. */
export async function callCloud(url: string, call: CloudCall, signal?: AbortSignal): Promise<unknown> {
  const response = await fetch(url, {
    method: 'POST',
    body: JSON.stringify(call),
    ...(signal !== undefined && { signal }),
  });
  if (!response.ok) throw new Error(`the cloud responded with ${response.status} to ${call.call}`);
  return await response.json();
}

/** One of the double's clouds. */
export class DoubleProvider implements ImageProvider {
  readonly name: string;
  readonly formats: readonly ImageFormat[] = ['raw'];
  readonly #url: string;

  constructor(name: string, url: string) {
    this.name = name;
    this.#url = url;
  }

  async upload(
    { uploadId, imageId, imageName }: UploadRequest,
    { signal }: OperationOptions = {},
  ): Promise<UploadResult> {
    const begin = { call: 'begin', provider: this.name, uploadId, imageId, imageName } as const;
    const externalId = String(await callCloud(this.#url, begin, signal));
    await callCloud(this.#url, { call: 'finish', externalId }, signal);
    return { externalId };
  }

  async discard(uploadId: string, { signal }: OperationOptions = {}): Promise<void> {
    await callCloud(this.#url, { call: 'discard', provider: this.name, uploadId }, signal);
  }

  async delete(externalId: string, { signal }: OperationOptions = {}): Promise<void> {
    await callCloud(this.#url, { call: 'delete', externalId }, signal);
  }

  async list({ signal }: OperationOptions = {}): Promise<readonly ProviderImage[]> {
    const images = await callCloud(this.#url, { call: 'list', provider: this.name }, signal);
    return (images as readonly CloudImage[]).map(({ externalId, uploadId, imageId, imageName }) => ({
      externalId,
      uploadId,
      imageId,
      imageName,
      format: 'raw',
      size: 1,
      uploadedAt: new Date(),
    }));
  }

  async findImages(): Promise<never> {
    throw new Error('a manager does not request candidates');
  }
}
