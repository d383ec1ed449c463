import { createHash } from 'node:crypto';
import type { ObjectStore, PutObjectOptions, Segment } from '../object-store.ts';
import { OpenStackError } from '../openstack-error.ts';
import { Segments } from './segments.ts';

/** Where a large object and its segments lie. */
export interface LargeObjectPlace {
  readonly container: string;
  readonly name: string;
}

/** What {@link putLargeObject} takes. */
export interface LargeObject extends LargeObjectPlace {
  /** The data from its beginning. */
  readonly open: () => AsyncIterable<Buffer>;
  /** Bytes. */
  readonly size: number;
  /** Bytes of a segment. */
  readonly segmentSize: number;
  /** Seconds in which the store may take no byte. */
  readonly stallTimeout: number;
  /** Headers for the object once its segments are there. */
  readonly headers: () => Promise<Readonly<Record<string, string>>>;
  readonly signal: AbortSignal;
}

/** The store removes what nobody removed, in seconds: a day. */
const DELETE_AFTER = { 'x-delete-after': '86400' } as const;

/**
 * Puts a file as a static large object, segment by segment.
 *
 * @throws OpenStackError `checksum-mismatch` if the store took something else than what was sent.
 */
export async function putLargeObject(store: ObjectStore, object: LargeObject): Promise<void> {
  const { container, name, open, size, segmentSize, stallTimeout, headers, signal } = object;
  await store.createContainer(container, signal);
  await store.createContainer(segmentContainer(container), signal);
  const segments = new Segments(open);
  const put: Segment[] = [];
  for (let start = 0; start < size; start += segmentSize) {
    const end = Math.min(start + segmentSize, size);
    const number = String(put.length).padStart(6, '0');
    const place = { container: segmentContainer(container), name: `${segmentPrefix(name)}${number}` };
    const options = { size: end - start, stallTimeout, signal };
    const etag = await putSegment(store, place, () => segments.read(start, end), options);
    put.push({ ...place, etag, size: end - start });
  }
  await store.putManifest(container, name, put, {
    headers: { ...DELETE_AFTER, ...(await headers()) },
    signal,
  });
}

/** Removes an object and its segments, whichever of them are there. */
export async function deleteLargeObject(
  store: ObjectStore,
  { container, name }: LargeObjectPlace,
  signal: AbortSignal,
): Promise<void> {
  await store.delete(container, name, signal);
  const segments = await store.list(segmentContainer(container), segmentPrefix(name), signal);
  for (const segment of segments) await store.delete(segmentContainer(container), segment.name, signal);
}

/** The large objects whose names begin so, whole or not, and when the newest part of each was put. */
export async function listLargeObjects(
  store: ObjectStore,
  { container, prefix }: { readonly container: string; readonly prefix: string },
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Date>> {
  const changes = new Map<string, Date>();
  const see = (name: string, changedAt: Date): void => {
    if (changedAt > (changes.get(name) ?? new Date(0))) changes.set(name, changedAt);
  };
  for (const { name, changedAt } of await store.list(container, prefix, signal)) see(name, changedAt);
  for (const { name, changedAt } of await store.list(segmentContainer(container), prefix, signal)) {
    see(name.slice(0, name.lastIndexOf('/')), changedAt);
  }
  return changes;
}

async function putSegment(
  store: ObjectStore,
  { container, name }: LargeObjectPlace,
  read: () => AsyncIterable<Buffer>,
  options: Omit<PutObjectOptions, 'headers'>,
): Promise<string> {
  let md5 = createHash('md5');
  const body = (): AsyncIterable<Buffer> => {
    md5 = createHash('md5');
    return hashed(read(), md5);
  };
  const stored = await store.put(container, name, body, { ...options, headers: DELETE_AFTER });
  const sent = md5.digest('hex');
  if (stored === undefined || stored === sent) return sent;
  throw new OpenStackError(
    'checksum-mismatch',
    `object ${container}/${name} has md5 ${stored} in the cloud, but ${sent} was sent; upload it again`,
  );
}

async function* hashed(
  pieces: AsyncIterable<Buffer>,
  hash: { update(piece: Buffer): unknown },
): AsyncGenerator<Buffer> {
  for await (const piece of pieces) {
    hash.update(piece);
    yield piece;
  }
}

function segmentContainer(container: string): string {
  return `${container}_segments`;
}

function segmentPrefix(name: string): string {
  return `${name}/`;
}
