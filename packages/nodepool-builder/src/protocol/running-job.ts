import type { SettingsOf } from '@nodepool-builder/image-builder';
import { objectOf } from '@nodepool-builder/image-builder/internal';
import { TEXT } from '../terms/record-schema.ts';

const PERCENT = { percent: { type: 'integer' } } as const;

const PROGRESS = {
  'bytes-per-second': { type: 'integer' }, // of a transfer
  'seconds-left': { type: 'integer' }, // an estimate
  phase: { type: 'string' }, // the part of the operation that runs
  waiting: { type: 'string' }, // subject of the wait
  retrying: { type: 'string' }, // the attempt that follows or runs, and the last error
  'retry-at': { type: 'string' }, // start of that attempt, in ISO 8601
} as const;

const READING = objectOf(PERCENT, PROGRESS);

/** Progress of an operation with its rate and the time left. */
export type Reading = SettingsOf<typeof READING>;

/** Schema of a {@link RunningJob}. */
export const RUNNING_JOB = objectOf(
  {
    kind: { enum: ['build', 'upload'] },
    'image-id': TEXT,
    handle: TEXT, // Gearman's handle of the job
    started: TEXT, // in ISO 8601
    ...PERCENT,
  },
  {
    diskimage: TEXT, // of a build: diskimages[].name
    provider: TEXT, // of an upload: providers[].name
    'image-name': TEXT, // of an upload: providers[].images[].name
    'upload-id': TEXT, // of an upload: see `UploadRequest.uploadId`
    ...PROGRESS,
  },
);

/** A build or an upload that runs in this process, with its progress. */
export type RunningJob = SettingsOf<typeof RUNNING_JOB>;
