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
  /** Everything that the answer holds, as it holds it. */
  readonly properties: Readonly<Record<string, unknown>>;
}

/**
 * Checks and reads an image in an answer.
 *
 * @throws Error that says what is wrong with it.
 */
export function readGlanceImage(value: unknown): GlanceImage {
  const properties = readObject(value, 'an image');
  const { size, checksum, os_hash_algo: algorithm, os_hash_value: hash, disk_format: format } = properties;
  const createdAt = new Date(readString(properties, 'created_at'));
  if (Number.isNaN(createdAt.getTime())) throw new Error('created_at of an image is no time');
  return {
    id: readString(properties, 'id'),
    status: readString(properties, 'status'),
    ...(typeof size === 'number' && { size }),
    ...(typeof checksum === 'string' && { checksum }),
    ...(typeof algorithm === 'string' && typeof hash === 'string' && { hash: { algorithm, value: hash } }),
    ...(typeof format === 'string' && { diskFormat: format }),
    createdAt,
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
  const { images, next } = readObject(value, 'the list of images');
  if (!Array.isArray(images)) throw new Error('the list has no images');
  return { images: images.map(readGlanceImage), ...(typeof next === 'string' && { next }) };
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
  const task = readObject(value, 'a task');
  const result = typeof task.result === 'object' && task.result !== null ? task.result : {};
  return {
    id: readString(task, 'id'),
    status: readString(task, 'status'),
    message: typeof task.message === 'string' ? task.message : '',
    ...('image_id' in result && typeof result.image_id === 'string' && { imageId: result.image_id }),
  };
}

/** Checks and reads the tasks of an image; none where a cloud does not tell them. */
export function readImageTasks(value: unknown): readonly GlanceTask[] {
  if (typeof value !== 'object' || value === null || !('tasks' in value)) return [];
  if (!Array.isArray(value.tasks)) throw new Error('tasks is no list');
  return value.tasks.map(readGlanceTask);
}

/** Checks and reads the import methods that a cloud offers (`/v2/info/import`). */
export function readImportMethods(value: unknown): readonly string[] {
  const { value: methods } = readObject(
    readObject(value, 'the import information')['import-methods'],
    'import-methods',
  );
  if (!Array.isArray(methods)) throw new Error('import-methods has no values');
  return methods.filter((method) => typeof method === 'string');
}

function readObject(value: unknown, what: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw new Error(`${what} is no object`);
}

function readString(object: Readonly<Record<string, unknown>>, key: string): string {
  const value = object[key];
  if (typeof value === 'string' && value !== '') return value;
  throw new Error(`${key} is missing or no text`);
}
