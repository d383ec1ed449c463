import { basename } from 'node:path';
import type { Checksums, PartialUpload } from '@nodepool-builder/image-builder';
import type { GlanceImage } from '../glance-image.ts';
import type { ImageApi, ImageData, ImportMethod } from '../image-api.ts';
import { OpenStackError } from '../openstack-error.ts';
import { activeImage } from './active-image.ts';

/** One try to bring a file into a cloud. */
export interface Transfer {
  readonly images: ImageApi;
  readonly uploadId: string;
  /** Makes the image, without data. */
  readonly create: () => Promise<GlanceImage>;
  /** Absolute path of the file. */
  readonly path: string;
  readonly data: ImageData;
  /** The file's digests: known before, or once all of it was sent. */
  readonly checksums: () => Promise<Checksums>;
  /** Seconds that the cloud may take from the last byte until the image is active. */
  readonly timeout: number;
  readonly signal: AbortSignal;
}

/** A way into a cloud. */
export interface Carrier {
  /** Whether the cloud may store something else than what it was given. */
  readonly convertible: boolean;
  /** Whether several processes may carry the same upload at the same time: whether each image is made by `create`. */
  readonly shareable: boolean;
  /**
   * Makes an image, and waits until it is active. What is left when it fails is the caller's to remove.
   *
   * @throws OpenStackError
   */
  carry(transfer: Transfer): Promise<GlanceImage>;
  /** Removes what it left besides images that have the upload's id. */
  clear?(images: ImageApi, uploadId: string, signal: AbortSignal): Promise<void>;
  /** What is there of what {@link clear} removes, of all uploads. */
  partialUploads?(images: ImageApi, signal: AbortSignal): Promise<readonly PartialUpload[]>;
}

/** The file is put, and stored as it is. */
export const PUT_FILE: Carrier = {
  convertible: false,
  shareable: true,
  async carry({ images, create, data, timeout, signal }) {
    const { id } = await create();
    await images.putFile(id, data, signal);
    return await activeImage(images, id, { arrival: 'file', timeout, signal });
  },
};

/** The file is put beside the image, and the cloud imports it from there. */
export const GLANCE_DIRECT: Carrier = {
  convertible: true,
  shareable: true,
  async carry({ images, create, data, timeout, signal }) {
    await requireMethod(images, 'glance-direct', signal);
    const { id } = await create();
    await images.stage(id, data, signal);
    await images.import(id, { name: 'glance-direct' }, signal);
    return await activeImage(images, id, { arrival: 'import', timeout, signal });
  },
};

/**
 * The cloud fetches the file itself.
 *
 * @param baseUrl where `images-dir` is served, as the cloud sees it.
 */
export function webDownload(baseUrl: string): Carrier {
  return {
    convertible: true,
    shareable: true,
    async carry({ images, create, path, timeout, signal }) {
      await requireMethod(images, 'web-download', signal);
      const { id } = await create();
      const uri = `${baseUrl.replace(/(?<!\/)\/+$/, '')}/${encodeURIComponent(basename(path))}`;
      await images.import(id, { name: 'web-download', uri }, signal);
      return await activeImage(images, id, { arrival: 'import', timeout, signal });
    },
  };
}

/** Before anything is made: a cloud that does not offer the method answers 404 or 409 later, and does not say why. */
async function requireMethod(
  images: ImageApi,
  method: ImportMethod['name'],
  signal: AbortSignal,
): Promise<void> {
  const offered = await images.importMethods(signal);
  if (offered.includes(method)) return;
  throw new OpenStackError(
    'invalid-settings',
    `cloud ${images.cloud} does not offer image-import ${method}, but ${offered.join(', ') || 'none at all'}; choose one of these, or leave image-import out`,
  );
}
