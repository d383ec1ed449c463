import { basename } from 'node:path';
import { CloudError, type UploadPart } from '@nodepool-builder/image-builder/plugin';
import type { GlanceImage } from '../glance-image.ts';
import type { ImageApi, ImportMethod } from '../image-api.ts';
import { activeImage } from './active-image.ts';
import type { FileData } from './file-data.ts';

/** One attempt to upload a file. */
export interface Transfer {
  readonly images: ImageApi;
  readonly uploadId: string;
  /** Creates the image, without data. */
  readonly create: () => Promise<GlanceImage>;
  readonly file: FileData;
  /** Max seconds from the last byte until the image is active. */
  readonly timeout: number;
  readonly signal: AbortSignal;
}

/** Method of getting a file into a cloud. */
export interface UploadMethod {
  /** True if a cloud task imports the data. */
  readonly imports: boolean;
  /** True if several processes may work on one upload: true if `create` makes the image. */
  readonly shareable: boolean;
  /**
   * Creates an image and waits until it is active. The caller cleans up after a failure.
   *
   * @throws CloudError
   */
  run(transfer: Transfer): Promise<GlanceImage>;
  /** Removes everything that it created, except images with the upload id. */
  clear?(images: ImageApi, uploadId: string, signal: AbortSignal): Promise<void>;
  /** Lists everything that {@link clear} would remove, for all uploads. */
  listParts?(images: ImageApi, signal: AbortSignal): Promise<readonly UploadPart[]>;
}

/** Import method of Glance, instead of a PUT of the file (`image-import`). */
export type ImageImport =
  | { readonly method: 'glance-direct' }
  | {
      readonly method: 'web-download';
      /** URL of `images-dir` from which the cloud downloads. */
      readonly baseUrl: string;
    };

/** Uploads the file with a PUT. */
const PUT_FILE: UploadMethod = {
  imports: false,
  shareable: true,
  async run({ images, create, file, timeout, signal }) {
    const { id } = await create();
    await images.putFile(id, file, signal);
    return await activeImage(images, id, { arrival: 'file', timeout, signal });
  },
};

/** Returns the upload method of an import method. Default: a PUT of the file. */
export function methodOf(imageImport: ImageImport | undefined): UploadMethod {
  if (imageImport === undefined) return PUT_FILE;
  return {
    imports: true,
    shareable: true,
    async run({ images, create, file, timeout, signal }) {
      await requireMethod(images, imageImport.method, signal);
      const { id } = await create();
      await images.import(id, await provideData(imageImport, images, id, file, signal), signal);
      return await activeImage(images, id, { arrival: 'import', timeout, signal });
    },
  };
}

/** Stages the file in Glance, or names the URL from which the cloud downloads it. */
async function provideData(
  imageImport: ImageImport,
  images: ImageApi,
  id: string,
  file: FileData,
  signal: AbortSignal,
): Promise<ImportMethod> {
  const { method: name } = imageImport;
  if (name === 'glance-direct') {
    await images.stage(id, file, signal);
    return { name };
  }
  const baseUrl = imageImport.baseUrl.replace(/(?<!\/)\/+$/, '');
  return { name, uri: `${baseUrl}/${encodeURIComponent(basename(file.path))}` };
}

/**
 * Checks that the cloud offers the method. Without this check, the cloud responds later with 404 or 409 and no reason.
 */
async function requireMethod(
  images: ImageApi,
  method: ImportMethod['name'],
  signal: AbortSignal,
): Promise<void> {
  const offered = await images.importMethods(signal);
  if (offered.includes(method)) return;
  throw new CloudError(
    'invalid-settings',
    `cloud ${images.cloud} does not offer image-import ${method}, only ${offered.join(', ') || 'no method at all'}; choose an offered method, or remove image-import`,
  );
}
