import type { OperationOptions, PartialUpload } from '@nodepool-builder/image-builder';
import { signalOf } from '@nodepool-builder/image-builder/module-kit';
import type { GlanceImage } from './glance-image.ts';
import type { ImageApi } from './image-api.ts';
import { unlessAbsent } from './unless-absent.ts';
import type { Carrier } from './upload/carry.ts';
import { PROVIDER_NAME, UPLOAD_ID } from './upload/image-properties.ts';

/** The statuses of an image that may yet become whole, or never. */
const UNFINISHED: readonly string[] = ['queued', 'saving', 'uploading', 'importing', 'killed'];

/** Where to look for partial uploads. */
export interface PartialUploadPlace {
  /** `providers[].name`. */
  readonly provider: string;
  readonly images: ImageApi;
  readonly carrier: Carrier;
  readonly signal: AbortSignal;
}

/** The images of a provider that are not whole, and what its carrier keeps beside images. */
export async function findPartialUploads(place: PartialUploadPlace): Promise<readonly PartialUpload[]> {
  const { provider, images, carrier, signal } = place;
  const found = await images.list({ [PROVIDER_NAME]: provider }, signal);
  const unfinished = found
    .filter(({ status }) => UNFINISHED.includes(status))
    .flatMap((image) => toPartialUpload(images, image) ?? []);
  return [...unfinished, ...((await carrier.partialUploads?.(images, signal)) ?? [])];
}

function toPartialUpload(images: ImageApi, image: GlanceImage): PartialUpload | undefined {
  const { id, status, updatedAt, properties } = image;
  const { [UPLOAD_ID]: uploadId } = properties;
  if (typeof uploadId !== 'string') return undefined;
  const remove = (options?: OperationOptions): Promise<boolean> => removeUnchanged(images, image, options);
  return { uploadId, subject: `image ${id} (${status})`, changedAt: updatedAt, remove };
}

async function removeUnchanged(
  images: ImageApi,
  { id, status, updatedAt }: GlanceImage,
  options: OperationOptions = {},
): Promise<boolean> {
  const signal = signalOf(options);
  const now = await images.get(id, signal).catch(unlessAbsent);
  if (now?.status !== status || now.updatedAt.getTime() !== updatedAt.getTime()) return false;
  await images.delete(id, signal);
  return true;
}
