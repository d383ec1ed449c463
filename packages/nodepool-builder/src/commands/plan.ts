import { previewPlan, type Step } from '@nodepool-builder/image-manager';
import type { Command } from 'commander';
import { loadConfiguration } from '../configuration/load.ts';
import { jobServers } from '../daemon/embedded-gearmand.ts';
import { toManagerConfiguration } from '../manager/manager-configuration.ts';
import { withStore } from './manager-store.ts';
import { configOption } from './options.ts';
import { printRecords, type ShownRecord } from './print-records.ts';
import { STANDARD_ERROR_LOGGER } from './standard-error-logger.ts';

/** `plan`: what the manager would do next, and why. */
export function registerPlan(program: Command, builders: readonly string[]): void {
  program
    .command('plan')
    .summary('show what the manager would do next, and why')
    .description(
      'Shows what the manager would do next, and what it waits for, each with the reason. It changes nothing.',
    )
    .addOption(configOption())
    .option('--json', 'print JSON')
    .action(async ({ config, json = false }: { config: string; json?: boolean }) => {
      const { configuration } = await loadConfiguration(config, { builders });
      const { steps, waits } = await withStore(configuration, (store) =>
        previewPlan({
          configuration: toManagerConfiguration(configuration),
          store,
          servers: jobServers(configuration),
          logger: STANDARD_ERROR_LOGGER,
        }),
      );
      const records: readonly ShownRecord[] = [
        ...steps.map((step) => ({ what: step.act, subject: subjectOf(step), why: step.reason, when: 'now' })),
        ...waits.map(({ subject, reason, until }) => ({
          what: 'wait',
          subject,
          why: reason,
          when: until === undefined ? null : new Date(until).toISOString(),
        })),
      ];
      await printRecords(records, { WHAT: 'what', SUBJECT: 'subject', WHEN: 'when', WHY: 'why' }, json);
    });
}

function subjectOf(step: Step): string {
  switch (step.act) {
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
