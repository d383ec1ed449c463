import { CloudError, poll, type UploadPart } from '@nodepool-builder/image-builder/plugin';
import { type GlanceTask, isRunning } from '../glance-image.ts';
import type { ImageApi } from '../image-api.ts';
import type { ObjectStore } from '../object-store.ts';
import { activeImage } from './active-image.ts';
import {
  deleteLargeObject,
  type LargeObjectPlace,
  listLargeObjects,
  putLargeObject,
} from './large-object.ts';
import type { Transfer, UploadMethod } from './upload-method.ts';

/** Container that shade used. */
const CONTAINER = 'images';

/** Segment size in bytes: 1 GiB. */
const SEGMENT_SIZE = 2 ** 30;

/** Message of the only transient task failure. */
const TRANSIENT_FAILURE = "Error code: '396'";

/** Name prefix of objects, and of images without properties, that belong to an upload. */
const PREFIX = 'nodepool-upload-';

/**
 * Uploads the data to the object store, from where a Glance task imports it.
 *
 * @param objects object store of the cloud
 */
export function importByTask(objects: ObjectStore): UploadMethod {
  const clear = async (images: ImageApi, uploadId: string, signal: AbortSignal): Promise<void> => {
    const place = placeOf(uploadId);
    await deleteLargeObject(objects, place, signal);
    for (const { id } of await images.list({ name: place.name }, signal)) await images.delete(id, signal);
  };
  return {
    imports: true,
    shareable: false,
    clear,
    async run({ images, uploadId, file, timeout, signal }) {
      const place = placeOf(uploadId);
      const headers = async (): Promise<Readonly<Record<string, string>>> => {
        const { md5, sha256 } = await file.checksums();
        return { 'x-object-meta-x-shade-md5': md5, 'x-object-meta-x-shade-sha256': sha256 };
      };
      await putLargeObject(objects, { ...place, data: file, segmentSize: SEGMENT_SIZE, headers, signal });
      const end = performance.now() + timeout * 1000;
      const id = await importedImage(images, place, { timeout, signal });
      const left = Math.max(0, (end - performance.now()) / 1000);
      return await activeImage(images, id, { arrival: 'import', timeout: left, signal });
    },
    async listParts(images, signal) {
      const found = await listLargeObjects(objects, { container: CONTAINER, prefix: PREFIX }, signal);
      return Array.from(found, ([name, changedAt]): UploadPart => {
        const uploadId = name.slice(PREFIX.length);
        return {
          uploadId,
          subject: `object ${CONTAINER}/${name}`,
          changedAt,
          async remove(again) {
            const place = { container: CONTAINER, prefix: name };
            const now = await listLargeObjects(objects, place, again);
            if (now.get(name)?.getTime() !== changedAt.getTime()) return false;
            await clear(images, uploadId, again);
            return true;
          },
        };
      });
    },
  };
}

function placeOf(uploadId: string): LargeObjectPlace {
  return { container: CONTAINER, name: `${PREFIX}${uploadId}` };
}

/** Runs the import task, retrying once after a transient failure. Returns the image id. */
async function importedImage(
  images: ImageApi,
  { container, name }: LargeObjectPlace,
  { timeout, signal }: Pick<Transfer, 'timeout' | 'signal'>,
): Promise<string> {
  const create = (): Promise<GlanceTask> => images.createImportTask(`${container}/${name}`, name, signal);
  let task = await create();
  let isRepeated = false;
  const check = async (): Promise<string | undefined> => {
    const current = await images.getTask(task.id, signal);
    const { id, status, result } = current;
    const message = current.message ?? '';
    const imageId = typeof result === 'object' ? result?.image_id : undefined;
    if (status === 'success' && imageId) return imageId;
    if (status === 'failure' && !isRepeated && message.includes(TRANSIENT_FAILURE)) {
      isRepeated = true;
      task = await create();
    } else if (!isRunning(current)) {
      throw new CloudError(
        'image-failed',
        `cloud ${images.cloud}: import task ${id} ended with ${status} and without an image: ${message || 'the cloud gives no reason'}; check the image service's log`,
      );
    }
    return undefined;
  };
  const onTimeout = (): Error =>
    new CloudError(
      'image-timeout',
      `cloud ${images.cloud}: import task ${task.id} has not ended after ${timeout} s; check the cloud's image service, or increase image-upload-timeout`,
    );
  return await poll(check, { timeout, signal, onTimeout });
}
