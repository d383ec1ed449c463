import type { Cron } from 'croner';
import type { Timing } from '../configuration.ts';
import type { LaterBuild, Step, Wait, World } from './step.ts';
import type { Survey } from './survey.ts';

/** What every rule looks at. */
export interface Pass {
  readonly survey: Survey;
  readonly world: World;
  readonly timing: Timing;
  /** By `rebuildCron`; an error in place of what is no cron expression. */
  readonly crons: ReadonlyMap<string, Cron | Error>;
}

/** What a rule finds. */
export type Finding = Step | Wait | LaterBuild;

/** The step of a record, unless somebody is at work on it or its last try failed a moment ago. */
export function* stepOfRecord(pass: Pass, subject: string, id: string, step: Step): Iterable<Finding> {
  if (pass.world.underWay.has(id)) return;
  const until = pass.world.retryAt.get(id) ?? -Infinity;
  if (until <= pass.world.now) yield step;
  else yield { subject, reason: `its last try failed, the next comes later: ${step.reason}`, until };
}
