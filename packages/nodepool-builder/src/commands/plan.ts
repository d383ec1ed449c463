import type { Step, UnrecordedImage } from '@nodepool-builder/image-manager';
import type { Command } from 'commander';
import type { Configuration } from '../configuration/configuration.ts';
import { loadConfiguration } from '../configuration/load.ts';
import { jobServers } from '../daemon/embedded-gearmand.ts';
import { toManagerConfiguration } from '../manager/manager-configuration.ts';
import type { Modules } from '../modules.ts';
import { type StateView, withStateView } from './manager-store.ts';
import { configOption } from './options.ts';
import { type Columns, printRecords, type ShownRecord } from './print-records.ts';
import { STANDARD_ERROR_LOGGER } from './standard-error-logger.ts';
import { unrecordedImages } from './unrecorded-images.ts';

/** `plan`: shows what the manager would do next, and why. */
export function registerPlan(program: Command, modules: Modules): void {
  program
    .command('plan')
    .summary('show what the manager would do next, and why')
    .description(
      'Shows what the manager would do next, and what it waits for, each with the reason. It changes nothing, and ' +
        'the manager need not run. "dib-image-list" and "image-list" show the current builds and uploads.',
    )
    .addOption(configOption())
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  $ nodepool-builder plan -c nodepool.yaml')
    .action(async ({ config, json = false }: { config: string; json?: boolean }) => {
      const { configuration } = await loadConfiguration(config, { modules });
      const records = await withStateView(configuration, (state) => planRecords(configuration, state));
      await printRecords(records, COLUMNS, json);
    });
}

const COLUMNS: Columns = { WHAT: 'what', SUBJECT: 'subject', WHEN: 'when', WHY: 'why' };

/** Prints the manager's next steps, and the orphans that it would delete. Changes nothing. */
export async function dryRun(configuration: Configuration): Promise<void> {
  const [plan, images] = await withStateView(configuration, (state) =>
    Promise.all([planRecords(configuration, state), unrecordedImages(configuration, state)]),
  );
  const orphans = images.filter(({ isOurs }) => isOurs).map(toShownRecord);
  await printRecords([...plan, ...orphans], COLUMNS, false);
}

function toShownRecord(orphan: UnrecordedImage): ShownRecord {
  const subject =
    orphan.location === 'builder'
      ? `${orphan.imageId} at a builder`
      : `${orphan.image.externalId} in ${orphan.provider}`;
  return {
    what: 'remove-leak',
    subject,
    when: 'seen twice',
    why: 'it is tagged as ours, and is in no record',
  };
}

/** The manager's next steps, its waits and its later builds. */
async function planRecords(configuration: Configuration, store: StateView): Promise<readonly ShownRecord[]> {
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
