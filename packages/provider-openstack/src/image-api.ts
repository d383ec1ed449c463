import { objectOf, PAGE_SIZES, TEXT } from '@nodepool-builder/image-builder/internal';
import { CloudError, JsonReader, listAll, unlessAbsent } from '@nodepool-builder/image-builder/plugin';
import {
  type GlanceImage,
  type GlanceTask,
  IMAGE_READER,
  PROTECTED_BY_US,
  QUOTA_READER,
  type QuotaUsage,
  TASK_READER,
} from './glance-image.ts';
import type { OpenStackSession } from './session/openstack-session.ts';
import { type RequestOptions, ServiceClient } from './session/service-client.ts';

/** Properties of a new image. All are text, except those with a type in Glance (`min_disk`, `tags`, `protected`). */
export type ImageProperties = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/** Import method, which gives an image its data without a PUT of the file. */
export type ImportMethod =
  | { readonly name: 'glance-direct' }
  | { readonly name: 'web-download'; readonly uri: string };

/** Data of an image. */
export interface ImageData {
  /**
   * Yields the image data, or the range from `start` to before `end`. A chunk's memory may be reused when the next chunk
   * is requested.
   */
  readonly body: (start?: number, end?: number) => AsyncIterable<Buffer>;
  /** Bytes. */
  readonly size: number;
}

/** Error codes that mean Glance refused a deletion. */
const REFUSED_CODES: readonly string[] = ['bad-request', 'forbidden', 'conflict'];

/** A page of images. `next` is the path and query of the next page; absent, null or empty on the last page. */
const IMAGE_PAGE = new JsonReader(
  objectOf({ images: { type: 'array' } }, { next: { type: ['string', 'null'] } }),
);

const IMAGE_TASKS = new JsonReader(objectOf({ tasks: { type: 'array' } }));

const IMPORT_METHODS = new JsonReader(
  objectOf({ 'import-methods': objectOf({ value: { type: 'array', items: TEXT } }) }),
);

/** Quotas of a project by their names in Glance. */
const USAGE = new JsonReader(objectOf({ usage: { type: 'object' } }));

const PATCH = { 'content-type': 'application/openstack-images-v2.1-json-patch' };

/** The part of Glance's Image API v2 that uploads need. All methods throw CloudError. */
export class ImageApi {
  /** Name of the cloud in messages. */
  readonly cloud: string;
  readonly #session: OpenStackSession;
  readonly #client: ServiceClient;

  constructor(session: OpenStackSession) {
    const { name, image } = session.settings;
    this.cloud = name;
    this.#session = session;
    this.#client = new ServiceClient({ ...image, version: 'v2' }, session);
  }

  /** Returns the project of the credentials, which owns the images. Undefined in a cloud without Keystone. */
  async projectId(signal: AbortSignal): Promise<string | undefined> {
    return await this.#session.projectId(signal);
  }

  /** `POST /v2/images`: creates an image without data. The request is not repeated if its response is lost. */
  async create(properties: ImageProperties, signal: AbortSignal): Promise<GlanceImage> {
    const options = { task: 'ImageCreate', body: properties, reader: IMAGE_READER, signal } as const;
    return (await this.#client.json('POST', '/images', options)).value;
  }

  async putFile(id: string, { body, size }: ImageData, signal: AbortSignal): Promise<void> {
    const headers = { 'x-openstack-image-size': String(size) };
    const options = { task: 'ImageUpload', size, headers, signal } as const;
    await this.#client.put(imagePath(id, '/file'), body, options);
  }

  /** `PUT /v2/images/{id}/stage`: stages data for a `glance-direct` import. */
  async stage(id: string, { body, size }: ImageData, signal: AbortSignal): Promise<void> {
    const options = { task: 'ImageStage', size, signal } as const;
    await this.#client.put(imagePath(id, '/stage'), body, options);
  }

  async import(id: string, method: ImportMethod, signal: AbortSignal): Promise<void> {
    const options = { task: 'ImageImport', body: { method }, signal } as const;
    await this.#client.json('POST', imagePath(id, '/import'), options);
  }

  /** `GET /v2/info/import`: returns the import methods of the cloud. */
  async importMethods(signal: AbortSignal): Promise<readonly string[]> {
    const information = await this.#client.get('/info/import', IMPORT_METHODS, {
      task: 'ImageImportInfo',
      signal,
    });
    return information['import-methods'].value;
  }

  /** `GET /v2/images?limit=1`: checks that the cloud responds, and returns the `Date` header of the response. */
  async probe(signal: AbortSignal): Promise<string | undefined> {
    const query = { limit: '1' };
    const response = await this.#client.json('GET', '/images', { query, reader: IMAGE_PAGE, signal });
    return response.headers.date;
  }

  /**
   * `GET /v2/info/usage`: returns quota usage of the project. Empty on clouds before 2022, and without limits in
   * Keystone.
   */
  async usage(signal: AbortSignal): Promise<Readonly<Record<string, QuotaUsage>>> {
    const found = await this.#client.get('/info/usage', USAGE, { signal }).catch(unlessUnavailable);
    const quotas = Object.entries(found?.usage ?? {});
    return Object.fromEntries(
      quotas.flatMap(([name, quota]) => QUOTA_READER.valid([quota]).map((read) => [name, read])),
    );
  }

  async get(id: string, signal: AbortSignal): Promise<GlanceImage> {
    return await this.#client.get(imagePath(id), IMAGE_READER, { task: 'ImageGet', signal });
  }

  /** `GET /v2/images/{id}/file`, streamed. */
  async download(id: string, signal: AbortSignal): Promise<AsyncIterable<Buffer>> {
    return await this.#client.read(imagePath(id, '/file'), { signal });
  }

  /** `GET /v2/images/{id}/tasks`: returns the imports of an image. Empty on clouds older than 2021. */
  async imageTasks(id: string, signal: AbortSignal): Promise<readonly GlanceTask[]> {
    const options = { task: 'ImageTaskGet', signal } as const;
    const found = this.#client.get(imagePath(id, '/tasks'), IMAGE_TASKS, options);
    return TASK_READER.valid((await found.catch(unlessUnavailable))?.tasks ?? []);
  }

  /**
   * `GET /v2/images`, page by page: lists the project's own images with these properties, in any status, including
   * hidden ones. Images of other projects are skipped, because anybody can publish one with our properties. Works with
   * clouds that do not filter by property. Throws if one of these images cannot be read, because it must not look as if
   * it were missing.
   */
  async list(
    filters: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<readonly GlanceImage[]> {
    const owner = await this.projectId(signal);
    const wanted = owner === undefined ? filters : { ...filters, owner };
    const isWanted = (image: unknown): boolean =>
      typeof image !== 'object' ||
      image === null ||
      Object.entries(wanted).every(
        ([name, value]) => (image as Readonly<Record<string, unknown>>)[name] === value,
      );
    const read = (images: readonly unknown[]): readonly GlanceImage[] =>
      images.filter(isWanted).map((image) => IMAGE_READER.check(image, 'an image in the list'));
    const shown = await this.#list(wanted, signal, read);
    const hidden = await this.#list({ ...wanted, os_hidden: 'true' }, signal, read).catch(unlessRefused);
    // A cloud without hidden images may ignore the filter.
    return [...new Map([...shown, ...hidden].map((image) => [image.id, image])).values()];
  }

  /** `GET /v2/images`, page by page: returns all images that match a query, except those that cannot be read. */
  async find(query: Readonly<Record<string, string>>, signal: AbortSignal): Promise<readonly GlanceImage[]> {
    return await this.#list(query, signal, (images) => {
      const valid = IMAGE_READER.valid(images);
      if (valid.length < images.length) {
        const count = images.length - valid.length;
        this.#client.warn(`the image list contains ${count} that cannot be read; they are ignored`);
      }
      return valid;
    });
  }

  /** @param read throws an Error if a page is invalid */
  async #list(
    query: Readonly<Record<string, string>>,
    signal: AbortSignal,
    read: (images: readonly unknown[]) => readonly GlanceImage[],
  ): Promise<readonly GlanceImage[]> {
    const check = (value: unknown): { entries: readonly GlanceImage[]; next: string | null | undefined } => {
      const { images, next } = IMAGE_PAGE.check(value);
      return { entries: read(images), next };
    };
    const list = { subject: `cloud ${this.cloud}: image list`, pageSizes: PAGE_SIZES };
    return await listAll(list, async (marker, size) => {
      const first = { ...query, ...(size !== undefined && { limit: String(size) }) };
      const page = marker === undefined ? first : queryOf(marker);
      const request: RequestOptions = { task: 'GlanceImageList', query: page, signal };
      return await this.#client.get('/images', { check }, request);
    });
  }

  /** `PATCH /v2/images/{id}`: sets properties and keeps the others. */
  async update(id: string, properties: ImageProperties, signal: AbortSignal): Promise<void> {
    const operations = Object.entries(properties).map(([name, value]) => {
      return { op: 'add', path: propertyPath(name), value };
    });
    const replay = true; // setting a value is idempotent
    const options = { task: 'ImageUpdate', body: operations, headers: PATCH, replay, signal } as const;
    await this.#client.json('PATCH', imagePath(id), options);
  }

  /** `PATCH /v2/images/{id}`: removes properties that the image has. */
  async removeProperties(id: string, names: readonly string[], signal: AbortSignal): Promise<void> {
    if (names.length === 0) return;
    const operations = names.map((name) => ({ op: 'remove', path: propertyPath(name) }));
    const options = { task: 'ImageUpdate', body: operations, headers: PATCH, signal } as const;
    await this.#client.json('PATCH', imagePath(id), options);
  }

  /** `DELETE /v2/images/{id}`; a missing image is not an error. An image that we protected is unprotected first. */
  async delete(id: string, signal: AbortSignal): Promise<void> {
    const remove = (): Promise<void> => this.#client.delete(imagePath(id), { task: 'ImageDelete', signal });
    try {
      await remove();
    } catch (error) {
      if (!(error instanceof CloudError) || !REFUSED_CODES.includes(error.code)) throw error;
      const image = await this.get(id, signal).catch(unlessAbsent);
      if (image === undefined) return; // Glance responds with 400 to one of two concurrent deletions.
      if (image.protected !== true) throw error;
      if (image[PROTECTED_BY_US] !== 'true') throw protectedByOthers(this.cloud, id, error);
      await this.update(id, { protected: false }, signal);
      await remove();
    }
  }

  /** `POST /v2/tasks`: starts an import from the object store. */
  async createImportTask(importFrom: string, name: string, signal: AbortSignal): Promise<GlanceTask> {
    const body = { type: 'import', input: { import_from: importFrom, image_properties: { name } } };
    const options = { task: 'ImageTaskCreate', body, reader: TASK_READER, signal } as const;
    return (await this.#client.json('POST', '/tasks', options)).value;
  }

  async getTask(id: string, signal: AbortSignal): Promise<GlanceTask> {
    const path = `/tasks/${encodeURIComponent(id)}`;
    return await this.#client.get(path, TASK_READER, { task: 'ImageTaskGet', signal });
  }
}

/** For `catch`: returns undefined after an error which means that the cloud does not support or permit the request. */
function unlessUnavailable(error: unknown): undefined {
  if (error instanceof CloudError && /^(?:forbidden|not-found)$/.test(error.code)) return;
  throw error;
}

/** For `catch`: returns no images if the cloud does not support a filter. */
function unlessRefused(error: unknown): readonly GlanceImage[] {
  if (error instanceof CloudError && error.code === 'bad-request') return [];
  throw error;
}

function imagePath(id: string, rest = ''): string {
  return `/images/${encodeURIComponent(id)}${rest}`;
}

function protectedByOthers(cloud: string, id: string, cause: CloudError): CloudError {
  return new CloudError(
    'forbidden',
    `cloud ${cloud}: image ${id} cannot be deleted, because nodepool-builder did not set its flag "protected"; run "openstack image set --unprotected ${id}" if nobody needs it`,
    { cause, status: cause.status },
  );
}

/** Escapes a name for a JSON pointer (RFC 6901). */
export function propertyPath(name: string): string {
  return `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/**
 * Returns the query of `next`. The path is dropped, because it is relative to the service root, unlike the paths of the
 * client.
 */
function queryOf(next: string): Readonly<Record<string, string>> {
  return Object.fromEntries(new URL(next, 'http://cloud.invalid').searchParams);
}
