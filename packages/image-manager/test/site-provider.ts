import type {
  OperationOptions,
  ProviderImage,
  UploadRequest,
  UploadResult,
} from '@nodepool-builder/image-builder';
import { FakeImageProvider } from '../../../test/doubles/fake-image-provider.ts';

/** Called before or after a call; may throw or wait. */
export type Hook = (signal: AbortSignal) => Promise<void> | void;

/** A provider with hooks that can make its calls fail. */
export class SiteProvider extends FakeImageProvider {
  beforeUpload: Hook | undefined;
  /** A failure here leaves the image in the provider. */
  afterUpload: Hook | undefined;
  beforeDelete: Hook | undefined;
  beforeList: Hook | undefined;
  /** Called after each change. */
  onChange: () => void = () => {};
  /** Number of listings. */
  listings = 0;
  /** Ids of the discarded uploads. */
  readonly discarded: string[] = [];

  override async upload(request: UploadRequest, options: OperationOptions = {}): Promise<UploadResult> {
    const signal = signalOf(options);
    await this.beforeUpload?.(signal);
    const result = await super.upload(request, options);
    this.onChange();
    await this.afterUpload?.(signal);
    return result;
  }

  override async discard(uploadId: string, options: OperationOptions = {}): Promise<void> {
    await super.discard(uploadId, options);
    this.discarded.push(uploadId);
  }

  override async delete(externalId: string, options: OperationOptions = {}): Promise<void> {
    await this.beforeDelete?.(signalOf(options));
    await super.delete(externalId, options);
    this.onChange();
  }

  override async list(options: OperationOptions = {}): Promise<readonly ProviderImage[]> {
    await this.beforeList?.(signalOf(options));
    this.listings += 1;
    return await super.list(options);
  }

  /** Adds an image without an upload. */
  plant(image: Partial<ProviderImage> & { readonly externalId: string }): void {
    this.images.set(image.externalId, {
      imageId: 'debian-1',
      imageName: 'debian',
      format: 'qcow2',
      size: 1,
      uploadedAt: new Date(0),
      ...image,
    });
  }

  /** Lists the ids of its images, oldest first. */
  get imageIds(): string[] {
    return Array.from(this.images.values(), ({ imageId }) => imageId);
  }
}

function signalOf({ signal = new AbortController().signal }: OperationOptions): AbortSignal {
  return signal;
}
