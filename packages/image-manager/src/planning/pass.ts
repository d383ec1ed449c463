import type { Cron } from 'croner';
import type { Timing } from '../configuration.ts';
import type { LaterBuild, Observation, Step, Wait } from './plan-types.ts';
import type { Survey } from './survey.ts';

/** Input of every planning rule. */
export interface Pass {
  readonly survey: Survey;
  readonly observation: Observation;
  readonly timing: Timing;
  /** Cron expressions by their text; an invalid one maps to its error. */
  readonly crons: ReadonlyMap<string, Cron | Error>;
}

/** Output of a planning rule. */
export type PlanItem = Step | Wait | LaterBuild;

/** Yields the step of a record, unless a task of it is running or has just failed. */
export function* stepOfRecord(pass: Pass, subject: string, id: string, step: Step): Iterable<PlanItem> {
  if (pass.observation.inProgress.has(id)) return;
  const until = pass.observation.retryAt.get(id) ?? -Infinity;
  if (until <= pass.observation.now) yield step;
  else yield { subject, reason: `the last attempt failed; the next follows later: ${step.reason}`, until };
}
