import { hash } from 'node:crypto';
import type { WorkerJob } from '@nodepool-builder/gearman-node';
import { ImageError, type SettingsOf } from '@nodepool-builder/image-builder';
import { objectOf } from '@nodepool-builder/image-builder/internal';
import type { ProviderConfiguration } from '../../configuration/configuration.ts';
import { TEXT } from '../../terms/record-schema.ts';
import { toText } from '../../yaml/values.ts';

/** Schema of an {@link UploadRecord}. */
export const UPLOAD_RECORD = objectOf(
  {
    version: { const: 1 },
    provider: TEXT, // providers[].name
    'upload-id': TEXT, // derived from the Gearman job, see `UploadRequest.uploadId`
    'image-id': TEXT,
    'image-name': TEXT, // providers[].images[].name
    'external-name': TEXT, // the image's name in the cloud
    begun: TEXT, // start of the upload, in ISO 8601
  },
  { 'external-id': TEXT }, // the cloud's id of the image, once the client may know it
);

/** An upload that has started, and whose end no job server has acknowledged. */
export type UploadRecord = SettingsOf<typeof UPLOAD_RECORD>;

/** Returns the name of a record on disk. It is a hash, because an upload id may have any characters and any length. */
export function recordName({ provider, 'upload-id': uploadId }: UploadRecord): string {
  return hash('sha256', `${provider}\0${uploadId}`);
}

/** Returns the id of a job's upload, which stays the same when the job is assigned again. */
export function uploadIdOf({ unique, handle }: Pick<WorkerJob, 'unique' | 'handle'>): string {
  return unique || handle;
}

/**
 * Makes the record of an upload that has not started.
 *
 * @throws ImageError `invalid-configuration` for an invalid `template-hostname`
 */
export function newUploadRecord(
  job: Pick<WorkerJob, 'unique' | 'handle'>,
  imageId: string,
  { name, entry, attributes }: ProviderConfiguration,
  imageName: string,
): UploadRecord {
  const now = new Date();
  return {
    version: 1,
    provider: name,
    'upload-id': uploadIdOf(job),
    'image-id': imageId,
    'image-name': imageName,
    'external-name': externalName(entry['template-hostname'], {
      'image.id': imageId,
      'image.name': imageName,
      timestamp: Math.floor(now.getTime() / 1000),
      ...Object.fromEntries(Object.entries(attributes).map(([key, value]) => [`provider.${key}`, value])),
    }),
    begun: now.toISOString(),
  };
}

/**
 * Formats the name of an image in a cloud from `template-hostname`, in the notation of Python's `str.format`.
 *
 * @param values by field, such as `image.name` or `provider.region_name`
 * @throws ImageError `invalid-configuration` for an unknown field or an unmatched brace
 */
export function externalName(template: string, values: Readonly<Record<string, unknown>>): string {
  const invalid = (reason: string): ImageError =>
    new ImageError('invalid-configuration', `the template-hostname "${template}" ${reason}`);
  // `{{`, `}}`, `{field}`, and single braces, which are invalid
  return template.replace(/\{\{|\}\}|\{([^{}]*)\}|[{}]/g, (braces, field?: string) => {
    if (field === undefined && braces.length === 2) return braces.charAt(0);
    if (field === undefined) throw invalid(`has an unmatched "${braces}"; double it for a literal brace`);
    if (Object.hasOwn(values, field)) return values[field] == null ? 'None' : toText(values[field]);
    const known = Object.keys(values).map((key) => `{${key}}`);
    throw invalid(`has the unknown field {${field}}; use ${known.join(', ')}`);
  });
}
