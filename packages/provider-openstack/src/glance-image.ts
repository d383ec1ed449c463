import { JsonReader, utcTime } from '@nodepool-builder/image-builder/module-kit';

const TEXT = { type: 'string' } as const;
const TIME = { type: 'string', format: 'time' } as const;

/** An image as Glance shows it. */
export interface GlanceImage {
  readonly id: string;
  /** `queued`, `saving`, `uploading`, `importing`, `active` and so on. */
  readonly status: string;
  /** Bytes; unknown until the data is there. */
  readonly size?: number;
  /** md5 of the data. */
  readonly checksum?: string;
  /** Another digest of the data. */
  readonly hash?: { readonly algorithm: string; readonly value: string };
  readonly diskFormat?: string;
  readonly createdAt: Date;
  /** When its status or its properties changed last. */
  readonly updatedAt: Date;
  /** All fields of the answer, unchanged. */
  readonly properties: Readonly<Record<string, unknown>>;
}

const IMAGE = new JsonReader({
  type: 'object',
  required: ['id', 'status', 'created_at'],
  properties: { id: TEXT, status: TEXT, created_at: TIME, updated_at: { ...TIME, type: ['string', 'null'] } },
});

/**
 * Checks and reads an image in an answer.
 *
 * @throws Error that names the invalid field
 */
export function readGlanceImage(value: unknown): GlanceImage {
  const { id, status, created_at: created, updated_at: updated } = IMAGE.check(value);
  const properties = value as Readonly<Record<string, unknown>>;
  const { size, checksum, os_hash_algo: algorithm, os_hash_value: hash, disk_format: format } = properties;
  return {
    id,
    status,
    ...(typeof size === 'number' && { size }),
    ...(typeof checksum === 'string' && { checksum }),
    ...(typeof algorithm === 'string' && typeof hash === 'string' && { hash: { algorithm, value: hash } }),
    ...(typeof format === 'string' && { diskFormat: format }),
    createdAt: new Date(utcTime(created)),
    updatedAt: new Date(utcTime(updated ?? created)),
    properties,
  };
}

/** A page of images, with the path of the next one. */
export interface ImagePage {
  readonly images: readonly GlanceImage[];
  /** Path and query, as Glance writes them. */
  readonly next?: string;
}

const IMAGE_PAGE = new JsonReader({
  type: 'object',
  required: ['images'],
  properties: { images: { type: 'array' }, next: {} },
});

/** Checks and reads a page of images. */
export function readImagePage(value: unknown): ImagePage {
  const { images, next } = IMAGE_PAGE.check(value);
  return { images: images.map(readGlanceImage), ...(typeof next === 'string' && { next }) };
}

/** A task of Glance (`/v2/tasks`). */
export interface GlanceTask {
  readonly id: string;
  /** `pending`, `processing`, `success` or `failure`. */
  readonly status: string;
  /** Why it failed. */
  readonly message: string;
  /** Image of a successful import. */
  readonly imageId?: string;
}

const TASK = new JsonReader({
  type: 'object',
  required: ['id', 'status'],
  properties: { id: TEXT, status: TEXT, message: {}, result: {} },
});

/** Checks and reads a task. */
export function readGlanceTask(value: unknown): GlanceTask {
  const { id, status, message, result } = TASK.check(value);
  const { image_id: imageId }: { image_id?: unknown } = Object(result);
  return {
    id,
    status,
    message: typeof message === 'string' ? message : '',
    ...(typeof imageId === 'string' && { imageId }),
  };
}

const IMAGE_TASKS = new JsonReader({ type: 'object', properties: { tasks: { type: 'array' } } });

/** Checks and reads the tasks of an image; none if the cloud does not list them. */
export function readImageTasks(value: unknown): readonly GlanceTask[] {
  return (IMAGE_TASKS.check(value ?? {}).tasks ?? []).map(readGlanceTask);
}

const IMPORT_INFORMATION = new JsonReader({
  type: 'object',
  required: ['import-methods'],
  properties: {
    'import-methods': {
      type: 'object',
      required: ['value'],
      properties: { value: { type: 'array', items: TEXT } },
    },
  },
});

/** Checks and reads the import methods that a cloud offers (`/v2/info/import`). */
export function readImportMethods(value: unknown): readonly string[] {
  return IMPORT_INFORMATION.check(value)['import-methods'].value;
}
