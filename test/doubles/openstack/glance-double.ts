import { createHash, randomUUID } from 'node:crypto';
import type { Reply } from '../loopback-server.ts';
import type { DoubleRequest } from './cloud-double.ts';

/** An image in the double. */
export interface StoredImage {
  readonly id: string;
  status: string;
  [property: string]: unknown;
}

/** Properties that Glance adds to an image, and that cannot be filters. */
const FILTERABLE = (name: string): boolean => !['limit', 'marker', 'sort'].includes(name);

/** Images of Glance v2 according to its API reference. */
export class GlanceDouble {
  readonly images: Map<string, StoredImage> = new Map();
  readonly #data = new Map<string, Buffer>();
  /** Images per page, whatever limit is requested. */
  pageSize = 2;

  /** Creates an image with data, like an import. */
  importImage(properties: Readonly<Record<string, unknown>>, data: Buffer): StoredImage {
    const image = this.#create(properties);
    this.#fill(image, data);
    return image;
  }

  handle({ method, path, query, body }: DoubleRequest): Reply | undefined {
    const [, id = '', rest] = /^\/v2\/images(?:\/([^/]+)(\/file)?)?$/.exec(path) ?? [undefined];
    if (!path.startsWith('/v2/images')) return undefined;
    if (id === '') return method === 'POST' ? this.#post(body) : this.#list(query);
    const image = this.images.get(decodeURIComponent(id));
    if (image === undefined) return { status: 404, body: `<h1>404</h1>No image found with ID ${id}` };
    if (rest !== undefined) return method === 'GET' ? this.#getFile(image) : this.#putFile(image, body);
    const handlers: Readonly<Record<string, () => Reply>> = {
      GET: () => ({ status: 200, body: image }),
      PATCH: () => this.#patch(image, body),
      DELETE: () => this.#delete(image),
    };
    return handlers[method]?.();
  }

  #post(body: Buffer): Reply {
    return { status: 201, body: this.#create(JSON.parse(body.toString()) as object) };
  }

  #create(properties: object): StoredImage {
    const image: StoredImage = {
      id: randomUUID(),
      status: 'queued',
      size: null,
      checksum: null,
      created_at: new Date().toISOString(),
      visibility: 'shared',
      protected: false,
      tags: [],
      ...properties,
    };
    this.images.set(image.id, image);
    return image;
  }

  #putFile(image: StoredImage, data: Buffer): Reply {
    if (image.status !== 'queued') return { status: 409, body: `Image status is ${image.status}` };
    this.#fill(image, data);
    return { status: 204 };
  }

  #getFile({ id }: StoredImage): Reply {
    const data = this.#data.get(id);
    if (data === undefined) return { status: 204 };
    return { status: 200, headers: { 'content-type': 'application/octet-stream' }, body: data };
  }

  #fill(image: StoredImage, data: Buffer): void {
    this.#data.set(image.id, data);
    image.size = data.length;
    image.checksum = createHash('md5').update(data).digest('hex');
    image.os_hash_algo = 'sha512';
    image.os_hash_value = createHash('sha512').update(data).digest('hex');
    image.status = 'active';
  }

  #list(query: URLSearchParams): Reply {
    const filters = [...query].filter(([name]) => FILTERABLE(name));
    const all = [...this.images.values()].filter((image) =>
      filters.every(([name, value]) => hasValue(image, name, value)),
    );
    const start = all.findIndex(({ id }) => id === query.get('marker')) + 1;
    const images = all.slice(start, start + this.pageSize);
    const next = new URLSearchParams([...filters, ['marker', images.at(-1)?.id ?? '']]);
    const more = start + images.length < all.length;
    return { status: 200, body: { images, ...(more && { next: `/v2/images?${next.toString()}` }) } };
  }

  #patch(image: StoredImage, body: Buffer): Reply {
    const operations = JSON.parse(body.toString()) as { op: string; path: string; value: unknown }[];
    for (const { path, value } of operations) {
      image[path.slice(1).replaceAll('~1', '/').replaceAll('~0', '~')] = value;
    }
    return { status: 200, body: image };
  }

  #delete({ id, protected: kept }: StoredImage): Reply {
    if (kept === true) return { status: 403, body: `Image ${id} is protected and cannot be deleted.` };
    this.images.delete(id);
    this.#data.delete(id);
    return { status: 204 };
  }
}

function hasValue(image: StoredImage, name: string, value: string): boolean {
  return name === 'tag' ? (image.tags as string[]).includes(value) : image[name] === value;
}
