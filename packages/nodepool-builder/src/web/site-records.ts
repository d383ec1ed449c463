import {
  type Build,
  type ManagerState,
  type Plan,
  rollbackChoices,
  type Step,
  type Upload,
  whyPaused,
} from '@nodepool-builder/image-manager';
import { functionName, subjectOf, verbOf } from '../protocol/functions.ts';
import { type LocatedJob, progressOf, runningJobsOf } from '../site/builder-status.ts';
import { obsoleteIn, shownError, shownState, sumUp } from '../site/shown-state.ts';
import { standingOf, type Work } from '../site/work.ts';
import type {
  BuildRecord,
  ImageRecord,
  PlaceRecord,
  PlanRecord,
  SiteRecords,
  UploadRecord,
} from './records.ts';
import type { JobServerStatus, Site } from './site-view.ts';

const known = new WeakMap<Site, SiteRecords>();

/** The records that the page and the API show; the newest come first. */
export function siteRecords(site: Site): SiteRecords {
  const before = known.get(site);
  if (before !== undefined) return before;
  const running = runningJobsOf(site.builders);
  const answers = site.servers.flatMap(({ functions }) => (functions === undefined ? [] : [functions]));
  const work: Work = { jobs: running, functions: answers.length > 0 ? answers.flat() : undefined };
  const builds = [
    ...Array.from(site.state.builds.values(), (build) => toBuildRecord(build, work)),
    ...unrecordedBuilds(site, running),
  ].toSorted(newestFirst);
  const uploads = Array.from(site.state.uploads.values(), (upload) => toUploadRecord(upload, work)).toSorted(
    newestFirst,
  );
  const plan = site.plan === undefined ? [] : planRecords(site.plan, site);
  const records = {
    at: timeOf(site.at),
    images: imageRecords(site, builds, uploads, plan),
    builds,
    uploads,
    plan,
    'cloud-images': site.cloudImages,
    builders: site.builders,
    servers: site.servers.map(toServerRecord),
    problems: site.problems,
  };
  known.set(site, records);
  return records;
}

function newestFirst(
  one: { readonly requested: string | null },
  other: { readonly requested: string | null },
): number {
  return (other.requested ?? '').localeCompare(one.requested ?? '');
}

function timeOf(milliseconds: number): string;
function timeOf(milliseconds: number | undefined): string | null;
function timeOf(milliseconds: number | undefined): string | null {
  return milliseconds === undefined ? null : new Date(milliseconds).toISOString();
}

/** State and fields that builds and uploads have in common. */
function commonFields(record: Build | Upload) {
  return {
    requested: timeOf(record.requestedAt),
    ended: timeOf(record.endedAt),
    reason: record.reason,
    error: shownError(record),
    'cancelled-by': record.cancelledBy ?? null,
  };
}

function toBuildRecord(build: Build, work: Work): BuildRecord {
  const { id, diskimage, withdrawn } = build;
  const job = functionName('image-build', diskimage);
  return {
    'image-id': id,
    diskimage,
    withdrawn,
    ...commonFields(build),
    ...standingOf({ id, state: shownState(build), job }, work),
  };
}

function toUploadRecord(upload: Upload, work: Work): UploadRecord {
  const { id, imageId } = upload;
  const job = functionName('image-upload', imageId);
  return {
    'upload-id': id,
    'image-id': imageId,
    diskimage: upload.diskimage,
    provider: upload.provider,
    'image-name': upload.imageName,
    'external-id': upload.externalId ?? null,
    ...commonFields(upload),
    ...standingOf({ id, state: shownState(upload), job }, work),
  };
}

/** Images that builders offer, and builds that they run, without a record of the manager. */
function unrecordedBuilds(
  { configuration, state, servers }: Site,
  running: ReadonlyMap<string, LocatedJob>,
): readonly BuildRecord[] {
  const found = new Map<string, BuildRecord>();
  const names = configuration.diskimages.map(({ name }) => name);
  const add = (imageId: string, fields: Partial<BuildRecord>): void => {
    if (state.builds.has(imageId)) return;
    const prefixes = names.filter((name) => imageId.startsWith(`${name}-`));
    const diskimage = prefixes.toSorted((one, other) => other.length - one.length)[0] ?? null;
    found.set(imageId, { ...UNRECORDED, 'image-id': imageId, diskimage, ...fields });
  };
  for (const { name, availableWorkers } of servers.flatMap(({ functions = [] }) => functions)) {
    if (availableWorkers > 0 && verbOf(name) === 'image-upload') add(subjectOf(name), {});
  }
  for (const job of running.values()) {
    const { kind, 'image-id': imageId, diskimage: built, started } = job;
    if (kind !== 'build') continue;
    const fields = built === undefined ? {} : { diskimage: built };
    add(imageId, { ...fields, state: 'building', requested: started, ...progressOf(job) });
  }
  return [...found.values()];
}

const UNRECORDED: Omit<BuildRecord, 'image-id' | 'diskimage'> = {
  state: 'ready',
  withdrawn: false,
  requested: null,
  ended: null,
  reason: 'a job that no manager of this page has submitted',
  error: null,
  'cancelled-by': null,
  ...progressOf(undefined),
};

function imageRecords(
  { configuration, state }: Site,
  builds: readonly BuildRecord[],
  uploads: readonly UploadRecord[],
  plan: readonly PlanRecord[],
): readonly ImageRecord[] {
  const isObsolete = obsoleteIn(configuration.diskimages, state);
  const choicesOf = rollbackChoices(state);
  const buildsOf = Map.groupBy(builds, ({ diskimage }) => diskimage);
  const uploadsOf = Map.groupBy(uploads, (one) => placeKey(one.diskimage, one.provider, one['image-name']));
  const stepsOf = Map.groupBy(plan, ({ diskimage }) => diskimage);
  const placesOf = Map.groupBy(
    configuration.providers.flatMap(({ name, entry }) =>
      entry.images.map((image) => ({ provider: name, image, paused: entry.pause || image.pause })),
    ),
    ({ image }) => image.diskimage,
  );
  return configuration.diskimages.map((entry): ImageRecord => {
    const { name } = entry;
    const pause = whyPaused(state, entry) !== undefined;
    const record = pause ? state.pauses.get(name) : undefined;
    const { ready, ...built } = placeOf(buildsOf.get(name) ?? [], isObsolete);
    return {
      name,
      ...built,
      paused: pause,
      'paused-by': record?.by ?? null,
      'paused-since': timeOf(record?.since),
      ready,
      'rollback-to': choicesOf(name)[1]?.id ?? null,
      providers: (placesOf.get(name) ?? []).map(({ provider, image, paused }): PlaceRecord => {
        const { ready: _, ...there } = placeOf(
          uploadsOf.get(placeKey(name, provider, image.name)) ?? [],
          isObsolete,
        );
        return { provider, 'image-name': image.name, ...there, paused: pause || paused };
      }),
      next: stepsOf.get(name) ?? [],
    };
  });
}

/** The fields that a disk image at the builders and an image in a provider have in common. */
function placeOf<R extends BuildRecord | UploadRecord>(
  records: readonly R[],
  isObsolete: (imageId: string) => boolean,
) {
  const { newest, ...more } = sumUp(records, isObsolete);
  return { ...more, newest: newest?.['image-id'] ?? null, 'newest-requested': newest?.requested ?? null };
}

function placeKey(...names: readonly string[]): string {
  return JSON.stringify(names);
}

function planRecords({ steps, waits, laterBuilds }: Plan, site: Site): readonly PlanRecord[] {
  const { state, configuration } = site;
  const images = new Map(configuration.diskimages.map(({ name }) => [`diskimage ${name}`, name]));
  for (const { name: provider, entry } of configuration.providers) {
    for (const { name, diskimage } of entry.images) {
      if (diskimage !== undefined) images.set(`provider ${provider}: image ${name}`, diskimage);
    }
  }
  return [
    ...steps.map((step) => ({
      what: step.kind,
      ...subjectOfStep(step, state),
      when: 'now',
      why: step.reason,
    })),
    ...waits.map(({ subject, reason, until }) => {
      const diskimage = images.get(subject) ?? diskimageOf(subject.replace(/^(build|upload) /, ''), state);
      return { what: 'wait', subject, diskimage, when: timeOf(until), why: reason };
    }),
    ...laterBuilds.map(({ diskimage, reason, at }) => {
      return { what: 'build', subject: diskimage, diskimage, when: timeOf(at), why: reason };
    }),
  ];
}

function subjectOfStep(step: Step, state: ManagerState): Pick<PlanRecord, 'subject' | 'diskimage'> {
  switch (step.kind) {
    case 'build':
      return { subject: step.diskimage, diskimage: step.diskimage };
    case 'upload': {
      const { imageId, provider, imageName, diskimage } = step;
      return { subject: `${imageId} to ${provider} as ${imageName}`, diskimage };
    }
    case 'prune':
      return { subject: `${step.builds.length + step.uploads.length} records`, diskimage: null };
    default: {
      const id = 'imageId' in step ? step.imageId : step.uploadId;
      return { subject: id, diskimage: diskimageOf(id, state) };
    }
  }
}

function diskimageOf(id: string, { builds, uploads }: ManagerState): string | null {
  return (builds.get(id) ?? uploads.get(id))?.diskimage ?? null;
}

function toServerRecord({ address, functions }: JobServerStatus) {
  const jobs = functions ?? [];
  const running = jobs.reduce((sum, one) => sum + one.running, 0);
  const queued = jobs.reduce((sum, one) => sum + one.total, 0) - running;
  return { address, answers: functions !== undefined, queued, running };
}
