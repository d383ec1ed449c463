import type { PartialUpload } from '@nodepool-builder/image-builder';
import { IMAGE_TAGS, signalOf } from '@nodepool-builder/image-builder/module-kit';
import { type GlanceImage, hasChanged, updatedAt } from './glance-image.ts';
import type { ImageApi } from './image-api.ts';
import { unlessAbsent } from './openstack-error.ts';
import type { UploadMethod } from './upload/upload-method.ts';

/** Statuses of an incomplete image. */
const INCOMPLETE: readonly string[] = ['queued', 'saving', 'uploading', 'importing', 'killed'];

export interface PartialUploadSearch {
  /** `providers[].name`. */
  readonly provider: string;
  readonly images: ImageApi;
  readonly method: UploadMethod;
  readonly signal: AbortSignal;
}

/** Lists the incomplete images of a provider, and what its upload method stores besides images. */
export async function findPartialUploads(search: PartialUploadSearch): Promise<readonly PartialUpload[]> {
  const { provider, images, method, signal } = search;
  const found = await images.list({ [IMAGE_TAGS.provider]: provider }, signal);
  const incomplete = found.filter(({ status }) => INCOMPLETE.includes(status));
  return [
    ...incomplete.flatMap((image) => toPartialUpload(images, image) ?? []),
    ...((await method.listPartialUploads?.(images, signal)) ?? []),
  ];
}

function toPartialUpload(images: ImageApi, image: GlanceImage): PartialUpload | undefined {
  const { id, status, [IMAGE_TAGS.uploadId]: uploadId } = image;
  if (typeof uploadId !== 'string') return undefined;
  return {
    uploadId,
    subject: `image ${id} (${status})`,
    changedAt: updatedAt(image),
    async remove(options = {}) {
      const signal = signalOf(options);
      const now = await images.get(id, signal).catch(unlessAbsent);
      if (now === undefined || hasChanged(image, now)) return false;
      await images.delete(id, signal);
      return true;
    },
  };
}
