import { createHash } from 'node:crypto';
import { hashed } from '@nodepool-builder/image-builder/internal';
import { CloudError } from '@nodepool-builder/image-builder/plugin';
import { isDigest } from '../glance-image.ts';
import type { ImageData } from '../image-api.ts';
import type { ObjectStore, Segment } from '../object-store.ts';

/** Location of a large object. */
export interface LargeObjectPlace {
  readonly container: string;
  readonly name: string;
}

export interface LargeObject extends LargeObjectPlace {
  readonly data: ImageData;
  /** Segment size in bytes. */
  readonly segmentSize: number;
  /** Returns the headers of the object; called after its segments were sent. */
  readonly headers: () => Promise<Readonly<Record<string, string>>>;
  readonly signal: AbortSignal;
}

/** Deletes objects after a day in case no cleanup removes them. */
const DELETE_AFTER = { 'x-delete-after': '86400' } as const;

/**
 * Puts a file as a static large object, segment by segment.
 *
 * @throws CloudError `checksum-mismatch` if the store has other data than was sent
 */
export async function putLargeObject(store: ObjectStore, object: LargeObject): Promise<void> {
  const { container, name, data, segmentSize, headers, signal } = object;
  const { size } = data;
  const segmentsIn = segmentContainer(container);
  await store.createContainer(container, signal);
  await store.createContainer(segmentsIn, signal);
  const put: Segment[] = [];
  for (let start = 0; start < size; start += segmentSize) {
    const end = Math.min(start + segmentSize, size);
    const segment = `${segmentPrefix(name)}${String(put.length).padStart(6, '0')}`;
    let md5 = createHash('md5');
    const body = (): AsyncIterable<Buffer> => {
      md5 = createHash('md5');
      return hashed(data.body(start, end), md5);
    };
    const options = { size: end - start, headers: DELETE_AFTER, signal };
    const stored = await store.put(segmentsIn, segment, body, options);
    const etag = md5.digest('hex');
    if (stored !== undefined && isDigest(stored) && stored.toLowerCase() !== etag) {
      throw new CloudError(
        'checksum-mismatch',
        `object ${segmentsIn}/${segment} has md5 ${stored} in the cloud, but ${etag} was sent; upload it again`,
      );
    }
    put.push({ container: segmentsIn, name: segment, etag: stored ?? etag, size: end - start });
  }
  const fields = { ...DELETE_AFTER, ...(await headers()) };
  await store.putManifest(container, name, put, { headers: fields, signal });
}

/** Deletes an object and its segments; missing ones are not an error. */
export async function deleteLargeObject(
  store: ObjectStore,
  { container, name }: LargeObjectPlace,
  signal: AbortSignal,
): Promise<void> {
  await store.delete(container, name, signal);
  const segments = await store.list(segmentContainer(container), segmentPrefix(name), signal);
  for (const segment of segments) await store.delete(segmentContainer(container), segment.name, signal);
}

/** Lists large objects whose names have a prefix, even incomplete ones, with the time of their last change. */
export async function listLargeObjects(
  store: ObjectStore,
  { container, prefix }: { readonly container: string; readonly prefix: string },
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Date>> {
  const objects = await store.list(container, prefix, signal);
  const segments = await store.list(segmentContainer(container), prefix, signal);
  const parts = segments.map(({ name, changedAt }) => {
    return { name: name.slice(0, name.lastIndexOf('/')), changedAt };
  });
  const changes = new Map<string, Date>();
  for (const { name, changedAt } of [...objects, ...parts]) {
    if (changedAt > (changes.get(name) ?? new Date(0))) changes.set(name, changedAt);
  }
  return changes;
}

function segmentContainer(container: string): string {
  return `${container}_segments`;
}

function segmentPrefix(name: string): string {
  return `${name}/`;
}
