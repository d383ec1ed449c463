import { hostname } from 'node:os';
import type { SettingsOf } from '@nodepool-builder/image-builder';
import { EVENTS } from '../../configuration/notification.ts';
import { CancelledError, keysOf } from '../../protocol/job-reply.ts';
import { errorLine } from '../../terms/command-error.ts';
import { recordSchema, TEXT, TEXT_OR_NULL } from '../../terms/record-schema.ts';
import type { EndedJob } from '../jobs/running-jobs.ts';

/** Schema of the events that receivers get. */
export const EVENT_SCHEMA = recordSchema({
  id: { ...TEXT, description: 'Id of the event, identical in each delivery.' },
  event: {
    enum: EVENTS,
    description: '`build-recovered` and `upload-recovered`: the first success after a failure.',
  },
  time: { ...TEXT, description: 'Time of the event, in ISO 8601.' },
  text: { ...TEXT, description: 'Summary in one sentence.' },
  host: { ...TEXT, description: 'Host that sends the event.' },
  diskimage: { ...TEXT_OR_NULL, description: 'Disk image; null if a builder without a manager uploads.' },
  'image-id': {
    ...TEXT,
    description: 'Id of the image. For `image-too-old`, the newest image in the provider.',
  },
  provider: { ...TEXT_OR_NULL, description: 'Provider of an upload; null for a build.' },
  'image-name': { ...TEXT_OR_NULL, description: 'Name of the image in the provider; null for a build.' },
  'upload-id': { ...TEXT_OR_NULL, description: 'Id of the upload; null for a build.' },
  'external-id': { ...TEXT_OR_NULL, description: "The provider's id of the image, if the manager has it." },
  error: { ...TEXT_OR_NULL, description: 'Error of a failure; otherwise null.' },
  'cancelled-by': { ...TEXT_OR_NULL, description: 'User who cancelled the job; otherwise null.' },
  age: { type: ['number', 'null'], description: 'Age of the newest image in seconds, for `image-too-old`.' },
});

/** An event as receivers get it. */
export type NotificationEvent = SettingsOf<typeof EVENT_SCHEMA>;

/** The facts of an event. A fact that is null or follows from the others may be omitted. */
export type EventFacts = Pick<NotificationEvent, 'id' | 'event' | 'image-id'> &
  Partial<Omit<NotificationEvent, 'text' | 'host'>>;

/** Completes an event. */
export function makeEvent(facts: EventFacts): NotificationEvent {
  const event = {
    host: hostname(),
    time: new Date().toISOString(),
    diskimage: null,
    provider: null,
    'image-name': null,
    'upload-id': null,
    'external-id': null,
    error: null,
    'cancelled-by': null,
    age: null,
    ...facts,
  };
  return { ...event, text: describe(event) };
}

/** How a build or an upload has ended. */
export type JobEnd = 'cancelled' | 'failed' | 'recovered' | 'succeeded';

const ENDS: Readonly<Record<string, string>> = {
  succeeded: 'is ready',
  recovered: 'is ready, for the first time after a failure',
  failed: 'failed',
  cancelled: 'was cancelled',
} satisfies Record<JobEnd, string>;

function describe(event: Omit<NotificationEvent, 'text'>): string {
  const { provider, diskimage, error, age, event: kind, 'image-id': imageId, 'cancelled-by': by } = event;
  if (kind === 'image-too-old') {
    const hours = Math.floor((age ?? 0) / 3600);
    return `image ${event['image-name']} in ${provider} is ${hours} h old: the newest one is ${imageId}`;
  }
  const end = kind.split('-')[1] ?? '';
  const of = diskimage === null ? '' : ` of ${diskimage}`;
  const subject = provider === null ? `build ${imageId}${of}` : `upload of ${imageId} to ${provider}`;
  const cause = by === null ? (error === null ? '' : `: ${error}`) : ` by ${by}`;
  return `${subject} ${ENDS[end]}${cause}`;
}

/**
 * Makes the events of jobs of other clients, such as nodepool's. Our own clients request the reason of a failure: the
 * manager sends the events of its own jobs, and a command prints the result to its user.
 */
export class JobEvents {
  /** Disk images whose last build failed, and places whose last upload failed. */
  readonly #failed = new Set<string>();

  /** Returns the event of a job that has ended; undefined for jobs of our own clients, and for jobs that run again. */
  eventOf({ kind, payload, error, isInterrupted, ...job }: EndedJob): EventFacts | undefined {
    if (isInterrupted || keysOf(payload).reason === true) return undefined;
    const { diskimage = null, provider = null, 'image-name': imageName = null } = job;
    const { 'image-id': imageId, 'upload-id': uploadId = null } = job;
    const end = this.#endOf(JSON.stringify([kind, diskimage, provider, imageName]), error);
    return {
      id: `${kind}/${uploadId ?? imageId}/${Date.now()}`,
      event: `${kind}-${end}`,
      diskimage,
      'image-id': imageId,
      provider,
      'image-name': imageName,
      'upload-id': uploadId,
      error: error === undefined ? null : errorLine(error),
      'cancelled-by': error instanceof CancelledError ? error.by : null,
    };
  }

  #endOf(place: string, error: unknown): JobEnd {
    if (error instanceof CancelledError) return 'cancelled';
    if (error === undefined) return this.#failed.delete(place) ? 'recovered' : 'succeeded';
    this.#failed.add(place);
    return 'failed';
  }
}
