import { getHashes } from 'node:crypto';
import type { SettingsOf } from '@nodepool-builder/image-builder';
import { NUMBER, objectOf, TEXT, utcTime } from '@nodepool-builder/image-builder/internal';
import { JsonReader } from '@nodepool-builder/image-builder/plugin';

const TIME = { type: 'string', format: 'date-time' } as const;
const TEXT_OR_NULL = { type: ['string', 'null'] } as const;

const IMAGE = objectOf(
  {
    id: TEXT,
    /** `queued`, `saving`, `uploading`, `importing`, `active` and so on. */
    status: TEXT,
    created_at: TIME,
  },
  {
    size: {},
    /** md5 of the image data. */
    checksum: TEXT_OR_NULL,
    /** Algorithm and value of a second digest of the image data. */
    os_hash_algo: TEXT_OR_NULL,
    os_hash_value: TEXT_OR_NULL,
    disk_format: TEXT_OR_NULL,
    updated_at: { type: ['string', 'null'], format: 'date-time' },
  },
);

/** An image in Glance, with all its properties. */
export type GlanceImage = SettingsOf<typeof IMAGE> & Readonly<Record<string, unknown>>;

/**
 * Image property that marks an image which nodepool-builder protected from deletion. Images without it stay protected.
 */
export const PROTECTED_BY_US = 'nodepool_builder_protected';

/** Returns the creation time of an image. */
export function createdAt(image: GlanceImage): Date {
  return new Date(utcTime(image.created_at));
}

/** Returns the time of the last status or property change. */
export function updatedAt(image: GlanceImage): Date {
  return new Date(utcTime(image.updated_at ?? image.created_at));
}

/** Bytes of the stored data. Undefined before the data is stored, and if the cloud reports no size or 0. */
export function dataSize({ size }: GlanceImage): number | undefined {
  return typeof size === 'number' && size > 0 ? size : undefined;
}

/** Returns whether two states of an image differ in status or modification time. */
export function hasChanged(before: GlanceImage, now: GlanceImage): boolean {
  return before.status !== now.status || before.updated_at !== now.updated_at;
}

/** Digest of the stored data, preferably md5. Undefined if the cloud reports none that Node.js can compute. */
export function storedDigest(image: GlanceImage): { algorithm: string; value: string } | undefined {
  const reported = Object.entries(reportedDigests(image));
  const [algorithm, value] = reported.find(([name]) => getHashes().includes(name)) ?? [];
  return algorithm === undefined || value === undefined ? undefined : { algorithm, value };
}

/**
 * Returns whether a text can be a digest. Some clouds report the object store's ETag instead, which may not be a
 * digest.
 */
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

const TASK = objectOf(
  {
    id: TEXT,
    /** `pending`, `processing`, `success` or `failure`. */
    status: TEXT,
  },
  {
    /** Reason for a failure. */
    message: TEXT_OR_NULL,
    /** Null or an empty text if the task has no result. */
    result: { type: ['object', 'string', 'null'], properties: { image_id: TEXT_OR_NULL } },
  },
);

/** A task of Glance (`/v2/tasks`). */
export type GlanceTask = SettingsOf<typeof TASK>;

/** Returns whether a task has not ended. */
export function isRunning({ status }: GlanceTask): boolean {
  return status === 'pending' || status === 'processing';
}

export const TASK_READER: JsonReader<typeof TASK> = new JsonReader(TASK);

/** The limit -1 means that there is none. */
const QUOTA = objectOf({ limit: NUMBER, usage: NUMBER });

/** One quota of a project. */
export type QuotaUsage = SettingsOf<typeof QUOTA>;

export const QUOTA_READER: JsonReader<typeof QUOTA> = new JsonReader(QUOTA);
