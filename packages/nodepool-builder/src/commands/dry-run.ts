import type { UnrecordedImage } from '@nodepool-builder/image-manager';
import type { Configuration } from '../configuration/configuration.ts';
import { withStateView } from './manager-store.ts';
import { PLAN_COLUMNS, planRecords } from './plan-records.ts';
import { printRecords, type ShownRecord } from './print-records.ts';
import { unrecordedImages } from './unrecorded-images.ts';

/** Prints the manager's next steps, and the orphans that it would delete. Changes nothing. */
export async function dryRun(configuration: Configuration): Promise<void> {
  const [plan, images] = await withStateView(configuration, (state) =>
    Promise.all([planRecords(configuration, state), unrecordedImages(configuration, state)]),
  );
  const orphans = images.filter(({ isOurs }) => isOurs).map(toShownRecord);
  await printRecords([...plan, ...orphans], PLAN_COLUMNS, false);
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
    why: 'it carries our mark, and is in no record',
  };
}
