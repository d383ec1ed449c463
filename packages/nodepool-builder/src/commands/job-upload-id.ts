import { createHash } from 'node:crypto';
import type { ImageFormat } from '@nodepool-builder/image-builder';

/** Identity of an upload of a CI job. */
export interface JobUpload {
  /** The provider's name. */
  readonly provider: string;
  /** The image's name there. */
  readonly name: string;
  /** Format of the image there. */
  readonly format: ImageFormat;
  /** Digest of the source file, before any conversion. */
  readonly sha256: string;
}

const JOB_UPLOAD_ID = /^job-[0-9a-f]{64}$/;

/** Id of an upload. All jobs that upload the same file get the same id. */
export function jobUploadId({ provider, name, format, sha256 }: JobUpload): string {
  const key = JSON.stringify([provider, name, format, sha256]);
  return `job-${createHash('sha256').update(key).digest('hex')}`;
}

/** Whether a CI job made the upload: the manager and Gearman jobs use ids of other forms. */
export function isJobUploadId(uploadId: string | undefined): boolean {
  return uploadId !== undefined && JOB_UPLOAD_ID.test(uploadId);
}

/** Image id of an upload. It is short, as it becomes part of the image's name in the provider. */
export function jobImageId(uploadId: string): string {
  return uploadId.slice('job-'.length, 'job-'.length + 16);
}
