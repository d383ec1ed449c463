import type { SettingsOf } from '@nodepool-builder/image-builder';
import { COUNT, recordSchema, TEXT, TEXT_OR_NULL, TIME_OR_NULL } from '../terms/record-schema.ts';

const COUNT_OR_NULL = { type: ['integer', 'null'] } as const;

const IMAGE_ID = { ...TEXT, description: 'Id of the image.' } as const;
const DISKIMAGE = { ...TEXT, description: '`diskimages[].name`.' } as const;
const PROVIDER = { ...TEXT, description: '`providers[].name`.' } as const;
const IMAGE_NAME = { ...TEXT, description: '`providers[].images[].name`.' } as const;
const WAITING = {
  ...TEXT_OR_NULL,
  description: 'Subject of the wait, such as a free builder or disk space.',
} as const;
const RETRYING = {
  ...TEXT_OR_NULL,
  description:
    'While requests to a provider or a server fail: the number of the attempt, and the last error.',
} as const;

/** Properties of a build or an upload. */
const WORK = {
  requested: { ...TIME_OR_NULL, description: 'Time of the request; null if it is unknown.' },
  ended: { ...TIME_OR_NULL, description: 'Time at which it became ready or failed; null before then.' },
  reason: { ...TEXT, description: 'Reason of the request.' },
  error: {
    ...TEXT_OR_NULL,
    description: 'Error of a failure, or reason why no builder offers the image now; otherwise null.',
  },
  'cancelled-by': { ...TEXT_OR_NULL, description: 'User who cancelled it; null if not cancelled.' },
  percent: { ...COUNT_OR_NULL, description: 'Progress in per cent while it runs, if its builder replies.' },
  'bytes-per-second': { ...COUNT_OR_NULL, description: 'Rate of an upload while it runs.' },
  'seconds-left': { ...COUNT_OR_NULL, description: 'Estimated time left while it runs.' },
  phase: { ...TEXT_OR_NULL, description: 'Phase of the running build, such as `install.d`.' },
  waiting: WAITING,
  retrying: RETRYING,
  'retry-at': { ...TIME_OR_NULL, description: 'Time of that attempt.' },
  host: { ...TEXT_OR_NULL, description: 'Host of the builder while it runs there.' },
} as const;

/** Schema of a {@link BuildRecord}. */
export const BUILD_RECORD = recordSchema({
  'image-id': IMAGE_ID,
  diskimage: { ...TEXT_OR_NULL, description: '`diskimages[].name`; null if no record contains it.' },
  state: {
    enum: ['queued', 'building', 'ready', 'failed', 'cancelled', 'deleting', 'deleted'],
    description: 'State of the build.',
  },
  withdrawn: { type: 'boolean', description: 'The build was rolled back.' },
  ...WORK,
});

/** Schema of an {@link UploadRecord}. */
export const UPLOAD_RECORD = recordSchema({
  'image-id': IMAGE_ID,
  'upload-id': { ...TEXT, description: 'Id of the upload.' },
  diskimage: DISKIMAGE,
  provider: PROVIDER,
  'image-name': IMAGE_NAME,
  'external-id': { ...TEXT_OR_NULL, description: 'Id in the provider, once the image is ready.' },
  state: {
    enum: ['queued', 'uploading', 'ready', 'missing', 'failed', 'cancelled', 'deleting', 'deleted'],
    description: 'State of the upload.',
  },
  ...WORK,
});

/** Schema of a {@link PlanRecord}. */
export const PLAN_RECORD = recordSchema({
  what: {
    enum: [
      'build',
      'upload',
      'resume-build',
      'resume-upload',
      'delete-build',
      'delete-upload',
      'discard',
      'prune',
      'wait',
    ],
    description: 'The step. `wait`: a step has to wait. `prune`: records are deleted.',
  },
  subject: { ...TEXT, description: 'Disk image, id of the image, or id of the upload.' },
  diskimage: { ...TEXT_OR_NULL, description: '`diskimages[].name`; null if the step concerns several.' },
  when: { ...TEXT_OR_NULL, description: '`now`, or a time in ISO 8601; null if it depends on an event.' },
  reason: { ...TEXT, description: 'Reason why the step is due, or has to wait.' },
});

const STATE =
  'State of the last build or upload there, ignoring images that were rolled back. `missing`: there is no ready image.';

/** Properties of a disk image at the builders, and of an image in a provider. */
const STATUS = {
  error: {
    ...TEXT_OR_NULL,
    description: 'Reason of the state, such as the error of a failure; null if the state is sufficient.',
  },
  waiting: WAITING,
  retrying: RETRYING,
  paused: { type: 'boolean', description: 'Builds and uploads are paused.' },
  ready: { ...COUNT, description: 'Number of ready images there.' },
  newest: { ...TEXT_OR_NULL, description: 'Id of the newest ready image there.' },
  'newest-requested': { ...TIME_OR_NULL, description: 'Time at which that image was requested there.' },
} as const;

/** User who paused a disk image. */
const PAUSE = {
  'paused-by': {
    ...TEXT_OR_NULL,
    description: 'User who paused the disk image, unless the configuration does.',
  },
  'paused-since': { ...TIME_OR_NULL, description: 'Time of the pause.' },
} as const;

const PROVIDER_IMAGE = recordSchema({
  provider: PROVIDER,
  'image-name': IMAGE_NAME,
  state: {
    enum: ['queued', 'uploading', 'ready', 'failed', 'cancelled', 'missing'],
    description: STATE,
  },
  ...STATUS,
});

/** Schema of an {@link ImageRecord}. */
export const IMAGE_RECORD = recordSchema({
  diskimage: DISKIMAGE,
  state: { enum: ['queued', 'building', 'ready', 'failed', 'cancelled', 'missing'], description: STATE },
  ...STATUS,
  ...PAUSE,
  'rollback-to': {
    ...TEXT_OR_NULL,
    description: 'Id of the image that a rollback would restore; null if there is no older image.',
  },
  providers: { type: 'array', items: PROVIDER_IMAGE, description: 'The providers that use the disk image.' },
  next: { type: 'array', items: PLAN_RECORD, description: 'The next steps.' },
});

/** Schema of a {@link StatusRecord}. */
export const STATUS_RECORD = recordSchema({
  diskimage: DISKIMAGE,
  provider: { ...TEXT_OR_NULL, description: '`providers[].name`; null for the builders.' },
  'image-name': { ...TEXT_OR_NULL, description: '`providers[].images[].name`; null for the builders.' },
  state: {
    enum: ['queued', 'building', 'uploading', 'ready', 'failed', 'cancelled', 'missing'],
    description: STATE,
  },
  ...STATUS,
  ...PAUSE,
});

/** A build of a disk image, with its progress. */
export type BuildRecord = SettingsOf<typeof BUILD_RECORD>;
/** An upload, with its progress. */
export type UploadRecord = SettingsOf<typeof UPLOAD_RECORD>;
/** A step of the manager's plan. */
export type PlanRecord = SettingsOf<typeof PLAN_RECORD>;
/** An image in a provider. */
export type ProviderImage = SettingsOf<typeof PROVIDER_IMAGE>;
/** A disk image of the configuration, at the builders and in its providers. */
export type ImageRecord = SettingsOf<typeof IMAGE_RECORD>;
/** A disk image at the builders, or in one provider. */
export type StatusRecord = SettingsOf<typeof STATUS_RECORD>;
