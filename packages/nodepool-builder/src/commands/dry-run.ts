import type { StrayImage } from '@nodepool-builder/image-manager';
import type { Configuration } from '../configuration/configuration.ts';
import { withStateView } from './manager-store.ts';
import { PLAN_COLUMNS, planRecords } from './plan-records.ts';
import { printRecords, type ShownRecord } from './print-records.ts';
import { strayImages } from './stray-images.ts';

/** Prints what a manager would begin with, and what it would remove as leaked. It changes nothing. */
export async function dryRun(configuration: Configuration): Promise<void> {
  const [plan, strays] = await withStateView(configuration, (state) =>
    Promise.all([planRecords(configuration, state), strayImages(configuration, state)]),
  );
  const leaks = strays.filter(({ isOurs }) => isOurs).map(describeLeak);
  await printRecords([...plan, ...leaks], PLAN_COLUMNS, false);
}

function describeLeak(leak: StrayImage): ShownRecord {
  const subject =
    leak.place === 'builder'
      ? `${leak.imageId} at a builder`
      : `${leak.image.externalId} in ${leak.provider}`;
  return {
    what: 'remove-leak',
    subject,
    when: 'seen twice',
    why: 'it carries our mark, and is in no record',
  };
}
