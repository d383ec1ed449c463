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

/** Stages the file in Glance, which then imports it. */
const GLANCE_DIRECT: UploadMethod = importMethod('glance-direct', async ({ images, file, signal }, id) => {
  await images.stage(id, file, signal);
  return { name: 'glance-direct' };
});

/**
 * Lets the cloud download the file.
 *
 * @param baseUrl URL of `images-dir` from which the cloud downloads
 */
function webDownload(baseUrl: string): UploadMethod {
  return importMethod('web-download', async ({ file }) => {
    const uri = `${baseUrl.replace(/(?<!\/)\/+$/, '')}/${encodeURIComponent(basename(file.path))}`;
    return { name: 'web-download', uri };
  });
}

/** Returns the upload method of an import method. Default: a PUT of the file. */
export function methodOf(imageImport: ImageImport | undefined): UploadMethod {
  if (imageImport === undefined) return PUT_FILE;
  return imageImport.method === 'glance-direct' ? GLANCE_DIRECT : webDownload(imageImport.baseUrl);
}

/** @param prepare provides the image data */
function importMethod(
  name: ImportMethod['name'],
  prepare: (transfer: Transfer, id: string) => Promise<ImportMethod>,
): UploadMethod {
  return {
    imports: true,
    shareable: true,
    async run(transfer) {
      const { images, create, timeout, signal } = transfer;
      await requireMethod(images, name, signal);
      const { id } = await create();
      await images.import(id, await prepare(transfer, id), signal);
      return await activeImage(images, id, { arrival: 'import', timeout, signal });
    },
  };
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
