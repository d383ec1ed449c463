import type { OperationOptions } from '@nodepool-builder/image-builder';
import { signalOf } from '@nodepool-builder/image-builder/module-kit';
import type { ImageApi } from './image-api.ts';
import type { ObjectStore } from './object-store.ts';
import { OpenStackError } from './openstack-error.ts';
import { activeImage } from './upload/active-image.ts';
import type { Carrier, Transfer } from './upload/carry.ts';
import {
  deleteLargeObject,
  type LargeObjectPlace,
  listLargeObjects,
  putLargeObject,
} from './upload/large-object.ts';
import { poll } from './upload/poll.ts';

/** The container that shade used. */
const CONTAINER = 'images';

/** Bytes of a segment: 1 GiB. */
const SEGMENT_SIZE = 2 ** 30;

/** The one failure that goes away when the same task is given again. */
const PASSING_FAILURE = "Error code: '396'";

/** How {@link importByTask} is set up. */
export interface ImportByTaskOptions {
  readonly objects: ObjectStore;
  /** Bytes; default 1 GiB. */
  readonly segmentSize?: number;
}

/** The data goes to the object store, and a task of Glance imports it from there. */
export function importByTask({ objects, segmentSize = SEGMENT_SIZE }: ImportByTaskOptions): Carrier {
  return {
    convertible: true,
    shareable: false,
    async carry({ images, uploadId, data, checksums, timeout, signal }) {
      const place = placeOf(uploadId);
      const headers = async (): Promise<Readonly<Record<string, string>>> => {
        const { md5, sha256 } = await checksums();
        return { 'x-object-meta-x-shade-md5': md5, 'x-object-meta-x-shade-sha256': sha256 };
      };
      await putLargeObject(objects, { ...place, ...data, open: data.body, segmentSize, headers, signal });
      const end = performance.now() + timeout * 1000;
      const id = await importedImage(images, place, { timeout, signal });
      const left = Math.max(0, (end - performance.now()) / 1000);
      return await activeImage(images, id, { arrival: 'import', timeout: left, signal });
    },
    async clear(images, uploadId, signal) {
      await deleteLargeObject(objects, placeOf(uploadId), signal);
      const { name } = placeOf(uploadId);
      for (const { id } of await images.list({ name }, signal)) await images.delete(id, signal);
    },
    async partialUploads(images, signal) {
      const found = await listLargeObjects(objects, { container: CONTAINER, prefix: PREFIX }, signal);
      return Array.from(found, ([name, changedAt]) => {
        const uploadId = name.slice(PREFIX.length);
        const remove = async (options: OperationOptions = {}): Promise<boolean> => {
          const stop = signalOf(options);
          const place = { container: CONTAINER, prefix: name };
          const now = (await listLargeObjects(objects, place, stop)).get(name);
          if (now?.getTime() !== changedAt.getTime()) return false;
          await this.clear?.(images, uploadId, stop);
          return true;
        };
        return { uploadId, subject: `object ${CONTAINER}/${name}`, changedAt, remove };
      });
    },
  };
}

/** The object, and the image until it gets its properties, are called after the upload: so they are found again. */
const PREFIX = 'nodepool-upload-';

function placeOf(uploadId: string): LargeObjectPlace {
  return { container: CONTAINER, name: `${PREFIX}${uploadId}` };
}

/** Runs the task, a second time if it must be, and returns the id of what it made. */
async function importedImage(
  images: ImageApi,
  { container, name }: LargeObjectPlace,
  { timeout, signal }: Pick<Transfer, 'timeout' | 'signal'>,
): Promise<string> {
  const create = (): ReturnType<ImageApi['createImportTask']> =>
    images.createImportTask(`${container}/${name}`, name, signal);
  let task = await create();
  let again = true;
  const look = async (): Promise<string | undefined> => {
    const { id, status, message, imageId } = await images.getTask(task.id, signal);
    if (status === 'success' && imageId !== undefined) return imageId;
    if (status === 'failure' && again && message.includes(PASSING_FAILURE)) {
      again = false;
      task = await create();
    } else if (status !== 'pending' && status !== 'processing') {
      throw new OpenStackError(
        'image-failed',
        `cloud ${images.cloud}: import task ${id} ended with ${status} and no image: ${message || 'it does not say why'}; see the log of its image service`,
      );
    }
    return undefined;
  };
  const onTimeout = (): Error =>
    new OpenStackError(
      'image-timeout',
      `cloud ${images.cloud}: import task ${task.id} has not ended after ${timeout} s; look at the cloud's image service, or raise image-upload-timeout`,
    );
  return await poll(look, { timeout, signal, onTimeout });
}
