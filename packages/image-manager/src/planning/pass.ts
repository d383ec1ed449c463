import type { Cron } from 'croner';
import type { Timing } from '../configuration.ts';
import type { Survey } from './survey.ts';

/** A step that makes a new record. */
export type NewStep =
  | { readonly kind: 'build'; readonly diskimage: string; readonly reason: string }
  | {
      readonly kind: 'upload';
      readonly imageId: string;
      readonly diskimage: string;
      readonly provider: string;
      readonly imageName: string;
      readonly reason: string;
    };

/**
 * A step that changes a record. It resumes a build or upload whose manager died or whose job was lost, or starts or
 * resumes a deletion; `discard` deletes what a failed upload may have left in the provider.
 */
export interface RecordStep {
  readonly kind: 'resume-build' | 'delete-build' | 'resume-upload' | 'delete-upload' | 'discard';
  /** Id of the build or upload. */
  readonly id: string;
  readonly reason: string;
}

/** A step to take now, and the reason. */
export type Step =
  | NewStep
  | RecordStep
  /** Deletes records that are no longer needed. */
  | {
      readonly kind: 'prune';
      readonly builds: readonly string[];
      readonly uploads: readonly string[];
      readonly reason: string;
    };

/** A step that has to wait, and the reason. */
export interface Wait {
  /** The subject of the step, such as `diskimage debian` or `provider cloud: image debian`. */
  readonly subject: string;
  readonly reason: string;
  /** End of the wait, in milliseconds since 1970; undefined if it depends on an event. */
  readonly until?: number;
}

/** A build that is due later. */
export interface LaterBuild {
  readonly diskimage: string;
  readonly reason: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

export interface Plan {
  readonly steps: readonly Step[];
  readonly waits: readonly Wait[];
  readonly laterBuilds: readonly LaterBuild[];
  /**
   * Time to plan again if no event happens before: the earliest `until` or later build. Milliseconds since 1970;
   * undefined if only events matter.
   */
  readonly nextAt?: number;
}

/** Input of a plan, apart from configuration and state. */
export interface Observation {
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Functions that builders offer now; only those with a worker. */
  readonly offered: OfferedFunctions;
  /** False if a job server does not reply: its builders may offer more. */
  readonly isComplete: boolean;
  /** Ids of builds and uploads with a running task, for which nothing is planned. */
  readonly inProgress: ReadonlySet<string>;
  /** Times since which no builder has offered an image, by image-id. */
  readonly absentSince: ReadonlyMap<string, number>;
  /** Times of the next attempts of tasks whose failure is not on record (deletions), by id. */
  readonly retryAt: ReadonlyMap<string, number>;
  /** Disk images with a request for a build, which is due at once, regardless of age and back-off. */
  readonly requested: ReadonlySet<string>;
}

/** The functions that builders offer to the job servers, by verb. */
export interface OfferedFunctions {
  /** Names in `image-build:<name>`. */
  readonly builds: ReadonlySet<string>;
  /** Image-ids in `image-upload:<image-id>`. */
  readonly uploads: ReadonlySet<string>;
  /** Image-ids in `image-delete:<image-id>`. */
  readonly deletes: ReadonlySet<string>;
}

/** Input of every planning rule. */
export interface Pass {
  readonly survey: Survey;
  readonly observation: Observation;
  readonly timing: Timing;
  /** Cron expressions by their text. */
  readonly crons: ReadonlyMap<string, Cron>;
}

/** Output of a planning rule. */
export type PlanItem = Step | Wait | LaterBuild;

/** Says that a builder is missing, as far as that is known. */
export function withoutBuilder({ observation: { isComplete } }: Pass, functionName: string): string {
  return isComplete
    ? `no builder offers ${functionName}`
    : `a job server does not reply, so no builder is known to offer ${functionName}`;
}

/** Yields a step, unless a task of its record is running or has just failed. */
export function* stepOfRecord({ observation }: Pass, step: RecordStep): Iterable<PlanItem> {
  const { kind, id } = step;
  if (observation.inProgress.has(id)) return;
  const until = observation.retryAt.get(id) ?? -Infinity;
  if (until <= observation.now) yield step;
  else {
    const subject = `${kind.endsWith('build') ? 'build' : 'upload'} ${id}`;
    yield { subject, reason: `the last attempt failed; the next follows later: ${step.reason}`, until };
  }
}
