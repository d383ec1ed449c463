import {
  type GlanceImage,
  type GlanceTask,
  type ImagePage,
  readGlanceImage,
  readGlanceTask,
  readImagePage,
  readImageTasks,
  readImportMethods,
} from './glance-image.ts';
import { OpenStackError } from './openstack-error.ts';
import type { ServiceClient } from './session/service-client.ts';
import { type CloudTask, type OnTask, timed } from './task-timing.ts';
import { unlessAbsent } from './unless-absent.ts';

/** What an image is made with: text, except for what Glance defines otherwise (`min_disk`, `tags`, `protected`). */
export type ImageProperties = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/** How data comes into an image that was created, other than by a PUT of the file. */
export type ImportMethod =
  | { readonly name: 'glance-direct' }
  | { readonly name: 'web-download'; readonly uri: string };

/** Data for the wire. */
export interface ImageData {
  /** Begins it anew. A piece's memory may be used again when the next one is asked for. */
  readonly body: () => AsyncIterable<Buffer>;
  /** Bytes. */
  readonly size: number;
  /** Seconds in which the cloud may take no byte. */
  readonly stallTimeout: number;
}

/** Images of one page of a list. */
const PAGE_SIZE = '1000';

/** What an {@link ImageApi} works with. */
export interface ImageApiOptions {
  /** As messages call the cloud. */
  readonly cloud: string;
  readonly client: ServiceClient;
  /** The project that the client's credentials are for. Default: there is none, as in a cloud without Keystone. */
  readonly projectId?: (signal: AbortSignal) => Promise<string | undefined>;
  readonly onTask?: OnTask;
}

/**
 * The part of Glance's Image API v2 that carries images. They throw OpenStackError; what is no proper answer
 * is `invalid-answer`.
 */
export class ImageApi {
  /** As messages call the cloud. */
  readonly cloud: string;
  readonly #client: ServiceClient;
  readonly #projectId: NonNullable<ImageApiOptions['projectId']>;
  readonly #onTask: OnTask | undefined;

  constructor({ cloud, client, projectId = async () => undefined, onTask }: ImageApiOptions) {
    this.cloud = cloud;
    this.#projectId = projectId;
    this.#client = client;
    this.#onTask = onTask;
  }

  /** The project that the credentials are for, which owns what they make; undefined in a cloud without Keystone. */
  async projectId(signal: AbortSignal): Promise<string | undefined> {
    return await this.#projectId(signal);
  }

  /** `POST /v2/images`: an image without data. It is not sent again when its answer is lost. */
  async create(properties: ImageProperties, signal: AbortSignal): Promise<GlanceImage> {
    const options = { body: properties, validate: readGlanceImage, signal };
    return (await this.#timed('ImageCreate', () => this.#client.json('POST', '/images', options))).value;
  }

  /** `PUT /v2/images/{id}/file`. */
  async putFile(id: string, { body, ...data }: ImageData, signal: AbortSignal): Promise<void> {
    const headers = {
      'content-type': 'application/octet-stream',
      'x-openstack-image-size': String(data.size),
    };
    await this.#timed('ImageUpload', () =>
      this.#client.put(imagePath(id, '/file'), body, { ...data, headers, signal }),
    );
  }

  /** `PUT /v2/images/{id}/stage`: data for a `glance-direct` import. */
  async stage(id: string, { body, ...data }: ImageData, signal: AbortSignal): Promise<void> {
    const headers = { 'content-type': 'application/octet-stream' };
    await this.#timed('ImageStage', () =>
      this.#client.put(imagePath(id, '/stage'), body, { ...data, headers, signal }),
    );
  }

  /** `POST /v2/images/{id}/import`. */
  async import(id: string, method: ImportMethod, signal: AbortSignal): Promise<void> {
    const options = { body: { method }, signal };
    await this.#timed('ImageImport', () => this.#client.json('POST', imagePath(id, '/import'), options));
  }

  /** `GET /v2/info/import`: the names of the import methods that the cloud offers. */
  async importMethods(signal: AbortSignal): Promise<readonly string[]> {
    const options = { validate: readImportMethods, signal };
    return (await this.#timed('ImageImportInfo', () => this.#client.json('GET', '/info/import', options)))
      .value;
  }

  /** `GET /v2/images/{id}`. */
  async get(id: string, signal: AbortSignal): Promise<GlanceImage> {
    const options = { validate: readGlanceImage, signal };
    return (await this.#timed('ImageGet', () => this.#client.json('GET', imagePath(id), options))).value;
  }

  /** `GET /v2/images/{id}/tasks`: what imports the image; nothing on clouds older than 2021. */
  async imageTasks(id: string, signal: AbortSignal): Promise<readonly GlanceTask[]> {
    const options = { validate: readImageTasks, expect: [200, 403, 404], signal };
    const path = imagePath(id, '/tasks');
    return (await this.#timed('ImageTaskGet', () => this.#client.json('GET', path, options))).value;
  }

  /**
   * `GET /v2/images`, page by page: our own images that have these properties, in any status: whoever can publish an
   * image can give it our properties. A cloud that does not filter by properties of one's own makes no difference.
   */
  async list(
    filters: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<readonly GlanceImage[]> {
    const owner = await this.projectId(signal);
    const wanted = owner === undefined ? filters : { ...filters, owner };
    return (await this.find(wanted, signal)).filter(({ properties }) =>
      Object.entries(wanted).every(([name, value]) => properties[name] === value),
    );
  }

  /** `GET /v2/images`, page by page: what the cloud answers to a query. */
  async find(query: Readonly<Record<string, string>>, signal: AbortSignal): Promise<readonly GlanceImage[]> {
    const found: GlanceImage[] = [];
    const first: Readonly<Record<string, string>> = { ...query, limit: PAGE_SIZE };
    for (let page: typeof first | undefined = first; page !== undefined; ) {
      const { images, next } = await this.#page(page, signal);
      found.push(...images);
      page = next === undefined ? undefined : queryOf(next);
    }
    return found;
  }

  /** `PATCH /v2/images/{id}`: sets properties, and leaves the others. */
  async update(id: string, properties: ImageProperties, signal: AbortSignal): Promise<void> {
    const operations = Object.entries(properties).map(([name, value]) => {
      return { op: 'add', path: propertyPath(name), value };
    });
    // To set a value twice is to set it once.
    await this.#patch(id, operations, { replay: true, signal });
  }

  /** `PATCH /v2/images/{id}`: removes properties that the image has. */
  async removeProperties(id: string, names: readonly string[], signal: AbortSignal): Promise<void> {
    const operations = names.map((name) => ({ op: 'remove', path: propertyPath(name) }));
    if (operations.length > 0) await this.#patch(id, operations, { signal });
  }

  /** `DELETE /v2/images/{id}`; an image that is not there is no error. */
  async delete(id: string, signal: AbortSignal): Promise<void> {
    const options = { expect: [200, 202, 204, 404], signal };
    try {
      await this.#timed('ImageDelete', () => this.#client.json('DELETE', imagePath(id), options));
    } catch (error) {
      // Of two that delete an image at the same moment, Glance tells one that the request was bad.
      const isGone =
        error instanceof OpenStackError &&
        error.code === 'bad-request' &&
        (await this.get(id, signal).catch(unlessAbsent)) === undefined;
      if (!isGone) throw error;
    }
  }

  /** `POST /v2/tasks`: an import from the object store. */
  async createImportTask(importFrom: string, name: string, signal: AbortSignal): Promise<GlanceTask> {
    const body = { type: 'import', input: { import_from: importFrom, image_properties: { name } } };
    const options = { body, validate: readGlanceTask, signal };
    return (await this.#timed('ImageTaskCreate', () => this.#client.json('POST', '/tasks', options))).value;
  }

  /** `GET /v2/tasks/{id}`. */
  async getTask(id: string, signal: AbortSignal): Promise<GlanceTask> {
    const options = { validate: readGlanceTask, signal };
    const path = `/tasks/${encodeURIComponent(id)}`;
    return (await this.#timed('ImageTaskGet', () => this.#client.json('GET', path, options))).value;
  }

  async #patch(
    id: string,
    operations: readonly object[],
    how: { readonly replay?: boolean; readonly signal: AbortSignal },
  ): Promise<void> {
    const contentType = 'application/openstack-images-v2.1-json-patch';
    const options = { body: operations, contentType, ...how };
    await this.#timed('ImageUpdate', () => this.#client.json('PATCH', imagePath(id), options));
  }

  async #page(query: Readonly<Record<string, string>>, signal: AbortSignal): Promise<ImagePage> {
    const options = { query, validate: readImagePage, signal };
    return (await this.#timed('GlanceImageList', () => this.#client.json('GET', '/images', options))).value;
  }

  #timed<T>(task: CloudTask, work: () => Promise<T>): Promise<T> {
    return timed(this.#onTask, task, work);
  }
}

function imagePath(id: string, rest = ''): string {
  return `/images/${encodeURIComponent(id)}${rest}`;
}

/** A name in a JSON pointer (RFC 6901). */
function propertyPath(name: string): string {
  return `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** `next` is a path below the service's root, and the client's paths are below the endpoint: only its query counts. */
function queryOf(next: string): Readonly<Record<string, string>> {
  return Object.fromEntries(new URL(next, 'http://cloud.invalid').searchParams);
}
