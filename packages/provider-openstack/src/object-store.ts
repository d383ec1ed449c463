import { JsonReader, utcTime } from '@nodepool-builder/image-builder/module-kit';
import type { ServiceClient } from './session/service-client.ts';
import { type CloudTask, type OnTask, timed } from './task-timing.ts';

/** A segment in the manifest of a large object. */
export interface Segment {
  readonly container: string;
  readonly name: string;
  /** md5 of its bytes. */
  readonly etag: string;
  /** Bytes. */
  readonly size: number;
}

/** An object in a list. */
export interface ListedObject {
  readonly name: string;
  /** When it was put. */
  readonly changedAt: Date;
}

/** Settings of {@link ObjectStore.put}. */
export interface PutObjectOptions {
  readonly size: number;
  /** Seconds in which the store may take no byte. */
  readonly stallTimeout: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** Names per page. */
const PAGE_SIZE = '1000';

/** The part of Swift's API that large objects need. Each method is one request, `list` one for each page. */
export class ObjectStore {
  readonly #client: ServiceClient;
  readonly #onTask: OnTask | undefined;

  constructor({ client, onTask }: { client: ServiceClient; onTask?: OnTask }) {
    this.#client = client;
    this.#onTask = onTask;
  }

  /** Creates a container, unless it exists. */
  async createContainer(container: string, signal: AbortSignal): Promise<void> {
    await this.#timed('ContainerCreate', () => this.#client.json('PUT', pathOf(container), { signal }));
  }

  /**
   * Puts an object.
   *
   * @returns the md5 of the stored bytes, if the store reports it
   */
  async put(
    container: string,
    name: string,
    body: () => AsyncIterable<Buffer>,
    { headers, ...options }: PutObjectOptions,
  ): Promise<string | undefined> {
    const answer = await this.#timed('ObjectCreate', () =>
      this.#client.put(pathOf(container, name), body, {
        ...options,
        headers: { 'content-type': 'application/octet-stream', ...headers },
      }),
    );
    return answer.headers.etag?.replaceAll('"', '');
  }

  /** Creates a static large object from segments. */
  async putManifest(
    container: string,
    name: string,
    segments: readonly Segment[],
    { headers, signal }: Pick<PutObjectOptions, 'headers' | 'signal'>,
  ): Promise<void> {
    const body = segments.map((segment) => ({
      // unlike in a URL, nothing is encoded
      path: `/${segment.container}/${segment.name}`,
      etag: segment.etag,
      size_bytes: segment.size,
    }));
    const options = { body, query: { 'multipart-manifest': 'put' }, headers, signal };
    await this.#timed('ObjectCreate', () => this.#client.json('PUT', pathOf(container, name), options));
  }

  /** Lists the objects of a container by a prefix of their names; none if the container does not exist. */
  async list(container: string, prefix: string, signal: AbortSignal): Promise<readonly ListedObject[]> {
    const objects: ListedObject[] = [];
    for (;;) {
      const query = { format: 'json', prefix, limit: PAGE_SIZE, marker: objects.at(-1)?.name ?? '' };
      const options = { query, expect: [200, 204, 404], validate: readObjects, signal };
      const { value } = await this.#timed('ContainerGet', () =>
        this.#client.json('GET', pathOf(container), options),
      );
      // the store may have smaller pages
      if (value.length === 0) return objects;
      objects.push(...value);
    }
  }

  /** Deletes an object; a missing one is not an error. */
  async delete(container: string, name: string, signal: AbortSignal): Promise<void> {
    const options = { expect: [200, 202, 204, 404], signal };
    await this.#timed('ObjectDelete', () => this.#client.json('DELETE', pathOf(container, name), options));
  }

  #timed<T>(task: CloudTask, work: () => Promise<T>): Promise<T> {
    return timed(this.#onTask, task, work);
  }
}

function pathOf(...names: readonly string[]): string {
  return names.map((name) => `/${name.split('/').map(encodeURIComponent).join('/')}`).join('');
}

const OBJECTS = new JsonReader({
  type: 'array',
  items: {
    type: 'object',
    required: ['name', 'last_modified'],
    properties: { name: { type: 'string' }, last_modified: { type: 'string', format: 'time' } },
  },
});

/** The answer for a missing or empty container has no body. */
function readObjects(value: unknown): readonly ListedObject[] {
  return OBJECTS.check(value ?? []).map(({ name, last_modified: changed }) => ({
    name,
    changedAt: new Date(utcTime(changed)), // Swift omits the zone
  }));
}
