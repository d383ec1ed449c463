import type { SettingsOf } from '@nodepool-builder/image-builder';
import type { SettingsSchema } from '@nodepool-builder/image-builder/module-kit';
import { BUILDER_STATUS } from '../protocol/builder-status.ts';
import { PROGRESS_PROPERTIES } from '../site/builder-status.ts';

const TEXT = { type: 'string' } as const;
const TEXT_OR_NULL = { type: ['string', 'null'] } as const;
const FLAG = { type: 'boolean' } as const;
const COUNT = { type: 'integer' } as const;

const IMAGE_ID = { ...TEXT, description: 'Id of the image.' } as const;
const REQUESTED = {
  ...TEXT_OR_NULL,
  description: 'Time of the request, in ISO 8601; null if unknown.',
} as const;
const ENDED = { ...TEXT_OR_NULL, description: 'When it became ready or failed; null before.' } as const;
const REASON = { ...TEXT, description: 'Why it was requested.' } as const;
const ERROR = { ...TEXT_OR_NULL, description: 'Why it failed; null if it has not.' } as const;
const CANCELLED_BY = { ...TEXT_OR_NULL, description: 'Who cancelled it; null if nobody has.' } as const;

/** An object with exactly these keys. */
function exactly<const P extends Readonly<Record<string, SettingsSchema>>>(properties: P) {
  const required = Object.keys(properties) as (keyof P & string)[];
  return { type: 'object', required, additionalProperties: false, properties } as const;
}

/** Schema of a {@link BuildRecord}. */
export const BUILD_RECORD = exactly({
  'image-id': IMAGE_ID,
  diskimage: { ...TEXT_OR_NULL, description: 'Name of the disk image; null if it is in no record.' },
  state: { enum: ['queued', 'building', 'ready', 'failed', 'cancelled', 'deleting', 'deleted'] },
  withdrawn: { ...FLAG, description: 'True after a rollback.' },
  requested: REQUESTED,
  ended: ENDED,
  reason: REASON,
  error: ERROR,
  'cancelled-by': CANCELLED_BY,
  ...PROGRESS_PROPERTIES,
});

/** Schema of an {@link UploadRecord}. */
export const UPLOAD_RECORD = exactly({
  'upload-id': { ...TEXT, description: 'Id of the upload.' },
  'image-id': IMAGE_ID,
  diskimage: { ...TEXT, description: 'Name of the disk image.' },
  provider: { ...TEXT, description: 'Name of the provider.' },
  'image-name': { ...TEXT, description: 'Name of the image in providers[].images.' },
  'external-id': { ...TEXT_OR_NULL, description: "The provider's id of the image; null before it is ready." },
  state: { enum: ['queued', 'uploading', 'ready', 'missing', 'failed', 'cancelled', 'deleting', 'deleted'] },
  requested: REQUESTED,
  ended: ENDED,
  reason: REASON,
  error: ERROR,
  'cancelled-by': CANCELLED_BY,
  ...PROGRESS_PROPERTIES,
});

/** Schema of a {@link PlanRecord}. */
export const PLAN_RECORD = exactly({
  what: { ...TEXT, description: 'Kind of the step, such as `build` and `upload`, or `wait`.' },
  subject: { ...TEXT, description: 'What the step is about.' },
  diskimage: { ...TEXT_OR_NULL, description: 'Name of the disk image; null if the step concerns several.' },
  when: { ...TEXT_OR_NULL, description: '`now`, or a time in ISO 8601; null if it depends on an event.' },
  why: { ...TEXT, description: 'The reason.' },
});

const PAUSED = { ...FLAG, description: 'Whether it is neither built nor uploaded.' } as const;
const PLACE_ERROR = {
  ...TEXT_OR_NULL,
  description:
    'Why it has this state: the error of a failure, or who cancelled it; null if the state says it all.',
} as const;

const PLACE = exactly({
  provider: { ...TEXT, description: 'Name of the provider.' },
  'image-name': { ...TEXT, description: 'Name of the image there.' },
  state: {
    enum: ['ready', 'queued', 'uploading', 'failed', 'cancelled', 'missing'],
    description:
      'State of the last upload, apart from images that were rolled back; `missing` if there is no ready image.',
  },
  error: PLACE_ERROR,
  waiting: PROGRESS_PROPERTIES.waiting,
  retrying: PROGRESS_PROPERTIES.retrying,
  newest: { ...TEXT_OR_NULL, description: 'Id of the newest good image there.' },
  'newest-requested': REQUESTED,
  paused: PAUSED,
});

/** Schema of an {@link ImageRecord}. */
export const IMAGE_RECORD = exactly({
  name: { ...TEXT, description: 'Name of the disk image.' },
  state: {
    enum: ['ready', 'queued', 'building', 'failed', 'cancelled', 'missing'],
    description:
      'State of the last build, apart from images that were rolled back; `missing` if there is no ready image.',
  },
  error: PLACE_ERROR,
  waiting: PROGRESS_PROPERTIES.waiting,
  retrying: PROGRESS_PROPERTIES.retrying,
  paused: PAUSED,
  'paused-by': { ...TEXT_OR_NULL, description: 'Who paused it; null if the configuration or nobody does.' },
  'paused-since': { ...TEXT_OR_NULL, description: 'When that was, in ISO 8601; null likewise.' },
  ready: { ...COUNT, description: 'Number of good images at the builders.' },
  newest: { ...TEXT_OR_NULL, description: 'Id of the newest good image.' },
  'newest-requested': REQUESTED,
  'rollback-to': {
    ...TEXT_OR_NULL,
    description: 'Id of the image that a rollback puts in use again; null if there is no older image.',
  },
  providers: { type: 'array', items: PLACE, description: 'The providers that use it.' },
  next: { type: 'array', items: PLAN_RECORD, description: 'What comes next.' },
});

/** Schema of a {@link ServerRecord}. */
export const SERVER_RECORD = exactly({
  address: { ...TEXT, description: 'Host and port of the job server.' },
  answers: FLAG,
  queued: { ...COUNT, description: 'Jobs that wait for a builder.' },
  running: { ...COUNT, description: 'Jobs that builders do now.' },
});

/** Schema of a {@link CloudImageRecord}. */
export const CLOUD_IMAGE_RECORD = exactly({
  provider: { ...TEXT, description: 'Name of the provider.' },
  name: { ...TEXT, description: 'Name in `cloud-images`, or in `images` of the provider.' },
  list: { enum: ['cloud-images', 'images'], description: 'List of the configuration that has it.' },
  'external-id': {
    ...TEXT_OR_NULL,
    description: "The provider's id of the image that is chosen now; null if none is known.",
  },
  'external-name': { ...TEXT_OR_NULL, description: 'Its name in the provider; null if it is unknown.' },
  built: { ...TEXT_OR_NULL, description: 'Time of its build, in ISO 8601; null if it is unknown.' },
  since: {
    ...TEXT_OR_NULL,
    description:
      'When this process saw the choice change; for its first choice, the time of creation of the image in the ' +
      'provider. Null for a fixed id.',
  },
  error: { ...TEXT_OR_NULL, description: 'Why the last attempt to choose failed; null if it did not.' },
});

/** Schema of {@link SiteRecords}. */
export const SITE_RECORDS = exactly({
  at: { ...TEXT, description: 'Time of this state, in ISO 8601.' },
  images: { type: 'array', items: IMAGE_RECORD },
  builds: { type: 'array', items: BUILD_RECORD },
  uploads: { type: 'array', items: UPLOAD_RECORD },
  plan: { type: 'array', items: PLAN_RECORD },
  'cloud-images': { type: 'array', items: CLOUD_IMAGE_RECORD },
  builders: { type: 'array', items: BUILDER_STATUS },
  servers: { type: 'array', items: SERVER_RECORD },
  problems: { type: 'array', items: TEXT, description: 'Why something is missing here.' },
});

/** A build of a disk image, with its progress. */
export type BuildRecord = SettingsOf<typeof BUILD_RECORD>;
/** An upload, with its progress. */
export type UploadRecord = SettingsOf<typeof UPLOAD_RECORD>;
/** A step of the manager's plan. */
export type PlanRecord = SettingsOf<typeof PLAN_RECORD>;
/** A disk image in a provider. */
export type PlaceRecord = SettingsOf<typeof PLACE>;
/** A disk image of the configuration. */
export type ImageRecord = SettingsOf<typeof IMAGE_RECORD>;
/** An image that is chosen by its id or by filters. */
export type CloudImageRecord = SettingsOf<typeof CLOUD_IMAGE_RECORD>;
/** A job server. */
export type ServerRecord = SettingsOf<typeof SERVER_RECORD>;
/** All that the page and the API show. */
export type SiteRecords = SettingsOf<typeof SITE_RECORDS>;
