import { getHashes } from 'node:crypto';
import type { SettingsOf } from '@nodepool-builder/image-builder';
import { JsonReader, utcTime } from '@nodepool-builder/image-builder/module-kit';
import type { BodyReader } from './session/service-client.ts';

const TEXT = { type: 'string' } as const;
const TIME = { type: 'string', format: 'time' } as const;
const TEXT_OR_NULL = { type: ['string', 'null'] } as const;

const IMAGE = {
  type: 'object',
  required: ['id', 'status', 'created_at'],
  properties: {
    id: TEXT,
    /** `queued`, `saving`, `uploading`, `importing`, `active` and so on. */
    status: TEXT,
    size: {},
    /** md5 of the data. */
    checksum: TEXT_OR_NULL,
    /** Algorithm and value of another digest of the data. */
    os_hash_algo: TEXT_OR_NULL,
    os_hash_value: TEXT_OR_NULL,
    disk_format: TEXT_OR_NULL,
    created_at: TIME,
    updated_at: { type: ['string', 'null'], format: 'time' },
  },
} as const;

/** An image in Glance, with all its properties. */
export type GlanceImage = SettingsOf<typeof IMAGE> & Readonly<Record<string, unknown>>;

/** Property of an image that this software protects from deletion. It never unprotects an image without it. */
export const PROTECTED_BY_US = 'nodepool_builder_protected';

/** Time at which an image was created. */
export function createdAt(image: GlanceImage): Date {
  return new Date(utcTime(image.created_at));
}

/** Time of the last change of the status or a property. */
export function updatedAt(image: GlanceImage): Date {
  return new Date(utcTime(image.updated_at ?? image.created_at));
}

/** Bytes of the stored data; undefined before it is stored, and if the cloud reports no number, or 0. */
export function dataSize({ size }: GlanceImage): number | undefined {
  return typeof size === 'number' && size > 0 ? size : undefined;
}

/** Whether two states of an image differ in the status or the time of the last change. */
export function hasChanged(before: GlanceImage, now: GlanceImage): boolean {
  return before.status !== now.status || before.updated_at !== now.updated_at;
}

/** Digest of the stored data, preferably md5. Undefined if the cloud reports none that Node.js can compute. */
export function storedDigest(image: GlanceImage): { algorithm: string; value: string } | undefined {
  const reported = Object.entries(reportedDigests(image));
  const [algorithm, value] = reported.find(([name]) => getHashes().includes(name)) ?? [];
  return algorithm === undefined || value === undefined ? undefined : { algorithm, value };
}

/** Whether a text can be a digest. The ETag of an object store, which some clouds report in its place, may be none. */
export function isDigest(text: string): boolean {
  return /^[\da-f]{32,}$/i.test(text);
}

/** All digests of the stored data that the cloud reports, by algorithm. */
export function reportedDigests({
  checksum,
  os_hash_algo: algorithm,
  os_hash_value: value,
}: Pick<GlanceImage, 'checksum' | 'os_hash_algo' | 'os_hash_value'>): Readonly<Record<string, string>> {
  const reported = Object.entries({ md5: checksum, ...(algorithm && { [algorithm]: value }) });
  return Object.fromEntries(
    reported
      .map(([name, digest]) => [name, digest?.toLowerCase() ?? ''] as const)
      .filter(([, digest]) => isDigest(digest)),
  );
}

export const IMAGE_READER: JsonReader<typeof IMAGE> = new JsonReader(IMAGE);

/** A page of images, which have not been read. */
export interface ImagePage {
  readonly images: readonly unknown[];
  /** Path and query of the next page, as Glance writes them; absent, null or empty on the last page. */
  readonly next?: string | null;
}

export const IMAGE_PAGE: BodyReader<ImagePage> = new JsonReader({
  type: 'object',
  required: ['images'],
  properties: { images: { type: 'array' }, next: TEXT_OR_NULL },
});

const TASK = {
  type: 'object',
  required: ['id', 'status'],
  properties: {
    id: TEXT,
    /** `pending`, `processing`, `success` or `failure`. */
    status: TEXT,
    /** Reason of a failure. */
    message: TEXT_OR_NULL,
    /** Null or empty text if the task has none. */
    result: { type: ['object', 'string', 'null'], properties: { image_id: TEXT_OR_NULL } },
  },
} as const;

/** A task of Glance (`/v2/tasks`). */
export type GlanceTask = SettingsOf<typeof TASK>;

/** Whether a task has not ended. */
export function isRunning({ status }: GlanceTask): boolean {
  return status === 'pending' || status === 'processing';
}

export const TASK_READER: JsonReader<typeof TASK> = new JsonReader(TASK);

/** The tasks of an image, which have not been read. */
export const IMAGE_TASKS: BodyReader<{ readonly tasks: readonly unknown[] }> = new JsonReader({
  type: 'object',
  required: ['tasks'],
  properties: { tasks: { type: 'array' } },
});

const METHODS = {
  type: 'object',
  required: ['value'],
  properties: { value: { type: 'array', items: TEXT } },
} as const;

/** The import methods of a cloud. */
export const IMPORT_METHODS: BodyReader<{ 'import-methods': SettingsOf<typeof METHODS> }> = new JsonReader({
  type: 'object',
  required: ['import-methods'],
  properties: { 'import-methods': METHODS },
});

const QUOTA = {
  type: 'object',
  required: ['limit', 'usage'],
  properties: {
    /** -1: no limit. */
    limit: { type: 'number' },
    usage: { type: 'number' },
  },
} as const;

/** One quota of a project. */
export type QuotaUsage = SettingsOf<typeof QUOTA>;

export const QUOTA_READER: JsonReader<typeof QUOTA> = new JsonReader(QUOTA);

/** The quotas of a project, which have not been read, by their names in Glance. */
export const USAGE: BodyReader<{ readonly usage: Readonly<Record<string, unknown>> }> = new JsonReader({
  type: 'object',
  required: ['usage'],
  properties: { usage: { type: 'object' } },
});
