import type { ManagerConfiguration } from '../configuration.ts';
import type { ManagerState } from '../records.ts';
import { planBuildRemovals } from './build-removals.ts';
import { planBuilds } from './builds.ts';
import { parseCrons } from './crons.ts';
import type { Finding, Pass } from './pass.ts';
import { planPruning } from './pruning.ts';
import type { LaterBuild, Plan, Step, Wait, World } from './step.ts';
import { surveyOf } from './survey.ts';
import { planUploadRemovals } from './upload-removals.ts';
import { planUploads } from './uploads.ts';

const RULES: readonly ((pass: Pass) => Iterable<Finding>)[] = [
  planBuilds,
  planUploads,
  planUploadRemovals,
  planBuildRemovals,
  planPruning,
];

/**
 * Decides what is to be done next: the same for the same arguments, which it leaves as they are. It never plans the
 * deletion of the last good upload of an image that a provider is configured to have, nor of the last build of a disk
 * image that is configured.
 */
export function plan(configuration: ManagerConfiguration, state: ManagerState, world: World): Plan {
  const pass: Pass = {
    survey: surveyOf(configuration, state),
    world,
    timing: configuration.timing,
    crons: parseCrons(configuration.diskimages),
  };
  const steps: Step[] = [];
  const waits: Wait[] = [];
  const laterBuilds: LaterBuild[] = [];
  let nextAt = Infinity;
  for (const rule of RULES) {
    for (const finding of rule(pass)) {
      if ('act' in finding) steps.push(finding);
      else if ('subject' in finding) waits.push(finding);
      else laterBuilds.push(finding);
      const at = 'at' in finding ? finding.at : 'until' in finding ? finding.until : undefined;
      nextAt = Math.min(nextAt, at ?? Infinity);
    }
  }
  return { steps, waits, laterBuilds, ...(nextAt < Infinity && { nextAt }) };
}
