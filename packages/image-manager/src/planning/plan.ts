import type { ManagerConfiguration } from '../configuration.ts';
import type { ManagerState } from '../records.ts';
import { planBuildRemovals } from './build-removals.ts';
import { planBuilds } from './builds.ts';
import { parseCrons } from './due.ts';
import type { LaterBuild, Observation, Pass, Plan, PlanItem, Step, Wait } from './pass.ts';
import { planPruning } from './pruning.ts';
import { surveyOf } from './survey.ts';
import { planUploadRemovals, planUploads } from './uploads.ts';

const RULES: readonly ((pass: Pass) => Iterable<PlanItem>)[] = [
  planBuilds,
  planUploads,
  planUploadRemovals,
  planBuildRemovals,
  planPruning,
];

/**
 * Plans the next steps. It is a pure function: equal arguments give equal plans. It never plans to delete the last good
 * upload of an image that a provider is configured to have, nor the last build of a configured disk image.
 */
export function plan(
  configuration: ManagerConfiguration,
  state: ManagerState,
  observation: Observation,
): Plan {
  const pass: Pass = {
    survey: surveyOf(configuration, state),
    observation,
    timing: configuration.timing,
    crons: parseCrons(configuration.diskimages),
  };
  const steps: Step[] = [];
  const waits: Wait[] = [];
  const laterBuilds: LaterBuild[] = [];
  let nextAt = Infinity;
  for (const rule of RULES) {
    for (const item of rule(pass)) {
      if ('kind' in item) steps.push(item);
      else if ('subject' in item) waits.push(item);
      else laterBuilds.push(item);
      const at = 'at' in item ? item.at : 'until' in item ? item.until : undefined;
      nextAt = Math.min(nextAt, at ?? Infinity);
    }
  }
  return { steps, waits, laterBuilds, ...(nextAt < Infinity && { nextAt }) };
}
