import type { Build, ManagerState, Plan, Step, Upload } from '@nodepool-builder/image-manager';
import type { Configuration } from '../configuration/configuration.ts';
import { functionName } from '../protocol/functions.ts';
import type { BuildRecord, PlanRecord, UploadRecord } from './records.ts';
import { shownError, shownState } from './shown-state.ts';
import { standingOf, type Work } from './work.ts';

/** Formats a time in ISO 8601. */
export function isoTime(milliseconds: number): string;
export function isoTime(milliseconds: number | undefined): string | null;
export function isoTime(milliseconds: number | undefined): string | null {
  return milliseconds === undefined ? null : new Date(milliseconds).toISOString();
}

/** Fields that builds and uploads have in common. */
function commonFields(record: Build | Upload) {
  return {
    requested: isoTime(record.requestedAt),
    ended: isoTime(record.endedAt),
    reason: record.reason,
    error: shownError(record),
    'cancelled-by': record.cancelledBy ?? null,
  };
}

/** @param work undefined if no builder was queried */
export function buildRecord(build: Build, work: Work | undefined): BuildRecord {
  const { id, diskimage, withdrawn } = build;
  const job = functionName('image-build', diskimage);
  return {
    'image-id': id,
    diskimage,
    withdrawn,
    ...commonFields(build),
    ...(build.state === 'ready' && work?.images?.has(id) === false && { error: AWAY }),
    ...standingOf({ id, state: shownState(build), job }, work),
  };
}

const AWAY = 'no builder offers it now; start the one that has its files';

/** @param work undefined if no builder was queried */
export function uploadRecord(upload: Upload, work: Work | undefined): UploadRecord {
  const { id, imageId, diskimage, provider } = upload;
  const job = functionName('image-upload', imageId);
  return {
    'image-id': imageId,
    'upload-id': id,
    diskimage,
    provider,
    'image-name': upload.imageName,
    'external-id': upload.externalId ?? null,
    ...commonFields(upload),
    ...standingOf({ id, state: shownState(upload), job }, work),
  };
}

/**
 * Formats the manager's next steps, its waits and its later builds.
 *
 * @param records builds and uploads, some of which wait
 */
export function planRecords(
  { steps, waits, laterBuilds }: Plan,
  { diskimages, providers }: Configuration,
  state: ManagerState,
  records: readonly (BuildRecord | UploadRecord)[],
): readonly PlanRecord[] {
  const images = new Map(diskimages.map(({ name }) => [`diskimage ${name}`, name]));
  for (const { name: provider, entry } of providers) {
    for (const { name, diskimage } of entry.images) {
      if (diskimage !== undefined) images.set(`provider ${provider}: image ${name}`, diskimage);
    }
  }
  return [
    ...steps.map((step) => {
      return { what: step.kind, ...subjectOf(step, state), when: 'now', reason: step.reason };
    }),
    ...waits.map(({ subject, reason, until }) => {
      const diskimage = images.get(subject) ?? diskimageOf(subject.replace(/^(build|upload) /, ''), state);
      return { what: 'wait' as const, subject, diskimage, when: isoTime(until), reason };
    }),
    ...records.flatMap((record) => {
      const { diskimage, waiting } = record;
      const id = 'upload-id' in record ? `upload ${record['upload-id']}` : `build ${record['image-id']}`;
      const wait = { what: 'wait' as const, subject: id, diskimage, when: null };
      return waiting === null ? [] : [{ ...wait, reason: `it waits for ${waiting}` }];
    }),
    ...laterBuilds.map(({ diskimage, reason, at }) => {
      return { what: 'build' as const, subject: diskimage, diskimage, when: isoTime(at), reason };
    }),
  ];
}

function subjectOf(step: Step, state: ManagerState): Pick<PlanRecord, 'subject' | 'diskimage'> {
  switch (step.kind) {
    case 'build':
      return { subject: step.diskimage, diskimage: step.diskimage };
    case 'upload': {
      const { imageId, provider, imageName, diskimage } = step;
      return { subject: `${imageId} to ${provider} as ${imageName}`, diskimage };
    }
    case 'prune':
      return { subject: `${step.builds.length + step.uploads.length} records`, diskimage: null };
    default:
      return { subject: step.id, diskimage: diskimageOf(step.id, state) };
  }
}

function diskimageOf(id: string, { builds, uploads }: ManagerState): string | null {
  return (builds.get(id) ?? uploads.get(id))?.diskimage ?? null;
}
