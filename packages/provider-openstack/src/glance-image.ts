import { list, record, text, time } from './session/answer-shape.ts';

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
  /** Everything that the answer holds, as it holds it. */
  readonly properties: Readonly<Record<string, unknown>>;
}

/**
 * Checks and reads an image in an answer.
 *
 * @throws Error that says what is wrong with it.
 */
export function readGlanceImage(value: unknown): GlanceImage {
  const properties = record(value, 'the image');
  const { size, checksum, os_hash_algo: algorithm, os_hash_value: hash, disk_format: format } = properties;
  return {
    id: text(properties.id, 'id'),
    status: text(properties.status, 'status'),
    ...(typeof size === 'number' && { size }),
    ...(typeof checksum === 'string' && { checksum }),
    ...(typeof algorithm === 'string' && typeof hash === 'string' && { hash: { algorithm, value: hash } }),
    ...(typeof format === 'string' && { diskFormat: format }),
    createdAt: new Date(time(properties.created_at, 'created_at')),
    updatedAt: new Date(time(properties.updated_at ?? properties.created_at, 'updated_at')),
    properties,
  };
}

/** One page of a list of images, and where the next one is. */
export interface ImagePage {
  readonly images: readonly GlanceImage[];
  /** Path and query, as Glance writes them. */
  readonly next?: string;
}

/** Checks and reads a page of images. */
export function readImagePage(value: unknown): ImagePage {
  const { images, next } = record(value, 'the list of images');
  return { images: list(images, 'images').map(readGlanceImage), ...(typeof next === 'string' && { next }) };
}

/** A task of Glance (`/v2/tasks`). */
export interface GlanceTask {
  readonly id: string;
  /** `pending`, `processing`, `success` or `failure`. */
  readonly status: string;
  /** Why it failed. */
  readonly message: string;
  /** What an import that succeeded made. */
  readonly imageId?: string;
}

/** Checks and reads a task. */
export function readGlanceTask(value: unknown): GlanceTask {
  const task = record(value, 'the task');
  const result = typeof task.result === 'object' && task.result !== null ? task.result : {};
  return {
    id: text(task.id, 'id'),
    status: text(task.status, 'status'),
    message: typeof task.message === 'string' ? task.message : '',
    ...('image_id' in result && typeof result.image_id === 'string' && { imageId: result.image_id }),
  };
}

/** Checks and reads the tasks of an image; none where a cloud does not tell them. */
export function readImageTasks(value: unknown): readonly GlanceTask[] {
  if (typeof value !== 'object' || value === null || !('tasks' in value)) return [];
  return list(value.tasks, 'tasks').map(readGlanceTask);
}

/** Checks and reads the import methods that a cloud offers (`/v2/info/import`). */
export function readImportMethods(value: unknown): readonly string[] {
  const offer = record(record(value, 'the import information')['import-methods'], 'import-methods');
  return list(offer.value, 'import-methods.value').map((method) => text(method, 'import-methods.value[]'));
}
