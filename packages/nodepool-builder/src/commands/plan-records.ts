import type { Step } from '@nodepool-builder/image-manager';
import type { Configuration } from '../configuration/configuration.ts';
import { jobServers } from '../daemon/embedded-gearmand.ts';
import { toManagerConfiguration } from '../manager/manager-configuration.ts';
import type { StateView } from './manager-store.ts';
import type { Columns, ShownRecord } from './print-records.ts';
import { STANDARD_ERROR_LOGGER } from './standard-error-logger.ts';

/** How a plan is shown as a table. */
export const PLAN_COLUMNS: Columns = { WHAT: 'what', SUBJECT: 'subject', WHEN: 'when', WHY: 'why' };

/** What the manager would do next, and what it waits for. */
export async function planRecords(
  configuration: Configuration,
  store: StateView,
): Promise<readonly ShownRecord[]> {
  const { previewPlan } = await import('@nodepool-builder/image-manager');
  const { steps, waits, laterBuilds } = await previewPlan({
    configuration: toManagerConfiguration(configuration),
    store,
    servers: jobServers(configuration),
    logger: STANDARD_ERROR_LOGGER,
  });
  return [
    ...steps.map((step) => ({ what: step.kind, subject: subjectOf(step), why: step.reason, when: 'now' })),
    ...waits.map(({ subject, reason, until }) => ({
      what: 'wait',
      subject,
      why: reason,
      when: until === undefined ? null : new Date(until).toISOString(),
    })),
    ...laterBuilds.map(({ diskimage, reason, at }) => ({
      what: 'build',
      subject: diskimage,
      why: reason,
      when: new Date(at).toISOString(),
    })),
  ];
}

function subjectOf(step: Step): string {
  switch (step.kind) {
    case 'build':
      return step.diskimage;
    case 'upload':
      return `${step.imageId} to ${step.provider} as ${step.imageName}`;
    case 'prune':
      return `${step.builds.length + step.uploads.length} records`;
    default:
      return 'imageId' in step ? step.imageId : step.uploadId;
  }
}
