import { objectOf, PAGE_SIZES, TEXT, utcTime } from '@nodepool-builder/image-builder/internal';
import { JsonReader, listAll, unlessAbsent } from '@nodepool-builder/image-builder/plugin';
import type { OpenStackSession } from './session/openstack-session.ts';
import { type PutOptions, ServiceClient } from './session/service-client.ts';

/** A segment in the manifest of a large object. */
export interface Segment {
  readonly container: string;
  readonly name: string;
  /** md5 of the segment. */
  readonly etag: string;
  /** Size in bytes. */
  readonly size: number;
}

/** An object in a list. */
export interface ListedObject {
  readonly name: string;
  readonly changedAt: Date;
}

/** The part of the Swift API that large objects need. Each method sends one request, `list` one per page. */
export class ObjectStore {
  readonly #client: ServiceClient;

  constructor(session: OpenStackSession) {
    this.#client = new ServiceClient(session.settings.objectStore, session);
  }

  /** Lists one container. @throws CloudError if the store does not respond */
  async probe(signal: AbortSignal): Promise<void> {
    await this.#client.json('GET', '', { query: { format: 'json', limit: '1' }, signal });
  }

  /** Creates a container if it does not exist. */
  async createContainer(container: string, signal: AbortSignal): Promise<void> {
    await this.#client.json('PUT', pathOf(container), { task: 'ContainerCreate', signal });
  }

  /** Puts an object. Returns its ETag, which is the md5 of the stored bytes unless the store encrypts them. */
  async put(
    container: string,
    name: string,
    body: () => AsyncIterable<Buffer>,
    options: PutOptions,
  ): Promise<string | undefined> {
    const path = pathOf(container, name);
    const { headers } = await this.#client.put(path, body, { ...options, task: 'ObjectCreate' });
    return headers.etag?.replaceAll('"', '');
  }

  /** Creates a static large object from segments. */
  async putManifest(
    container: string,
    name: string,
    segments: readonly Segment[],
    options: Pick<PutOptions, 'headers' | 'signal'>,
  ): Promise<void> {
    const body = segments.map((segment) => ({
      path: `/${segment.container}/${segment.name}`, // Unlike in a URL, names are not encoded.
      etag: segment.etag,
      size_bytes: segment.size,
    }));
    const query = { 'multipart-manifest': 'put' };
    await this.#client.json('PUT', pathOf(container, name), {
      ...options,
      task: 'ObjectCreate',
      body,
      query,
    });
  }

  /** Lists the objects of a container whose names have a prefix. Empty if the container does not exist. */
  async list(container: string, prefix: string, signal: AbortSignal): Promise<readonly ListedObject[]> {
    const subject = `cloud ${this.#client.cloud}: list of container ${container}`;
    return await listAll({ subject, pageSizes: PAGE_SIZES }, async (marker = '', size) => {
      const query = { format: 'json', prefix, marker, ...(size !== undefined && { limit: String(size) }) };
      const options = { task: 'ContainerGet', query, signal } as const;
      const found = this.#client.get(pathOf(container), { check: readObjects }, options);
      const entries = (await found.catch(unlessAbsent)) ?? [];
      // A page may be smaller than the limit, so only an empty page is the last one.
      return { entries, next: entries.at(-1)?.name };
    });
  }

  /** Deletes an object; a missing one is not an error. */
  async delete(container: string, name: string, signal: AbortSignal): Promise<void> {
    await this.#client.delete(pathOf(container, name), { task: 'ObjectDelete', signal });
  }
}

function pathOf(...names: readonly string[]): string {
  return names.map((name) => `/${name.split('/').map(encodeURIComponent).join('/')}`).join('');
}

const OBJECTS = new JsonReader({
  type: 'array',
  items: objectOf({ name: TEXT, last_modified: { type: 'string', format: 'date-time' } }),
});

function readObjects(value: unknown): readonly ListedObject[] {
  return OBJECTS.check(value).map(({ name, last_modified: changed }) => ({
    name,
    changedAt: new Date(utcTime(changed)), // Swift omits the time zone.
  }));
}
