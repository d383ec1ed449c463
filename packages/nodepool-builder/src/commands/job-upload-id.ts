import { createHash } from 'node:crypto';
import type { ImageFormat } from '@nodepool-builder/image-builder';

/** What makes an upload of a CI job the same as another one. */
export interface JobUpload {
  /** The provider's name. */
  readonly provider: string;
  /** The image's name there. */
  readonly name: string;
  /** What it is there. */
  readonly format: ImageFormat;
  /** Of the file that was given, which may be converted on its way. */
  readonly sha256: string;
}

const JOB_UPLOAD_ID = /^job-[0-9a-f]{64}$/;

/** The upload's id: whoever uploads the same file, in whichever job, makes the same one. */
export function jobUploadId({ provider, name, format, sha256 }: JobUpload): string {
  const key = JSON.stringify([provider, name, format, sha256]);
  return `job-${createHash('sha256').update(key).digest('hex')}`;
}

/** Whether an upload was made by a job: the ids of a manager's and of Gearman's jobs have other forms. */
export function isJobUploadId(uploadId: string | undefined): boolean {
  return uploadId !== undefined && JOB_UPLOAD_ID.test(uploadId);
}

/** The image's id of such an upload: short, for it becomes part of the image's name in the provider. */
export function jobImageId(uploadId: string): string {
  return uploadId.slice('job-'.length, 'job-'.length + 16);
}
