import type { SettingsOf } from '@nodepool-builder/image-builder';
import { BUILDER_STATUS } from '../protocol/builder-status.ts';
import { subjectOf, verbOf } from '../protocol/functions.ts';
import { type LocatedJob, runningJobsOf } from '../site/builder-status.ts';
import { buildRecord, isoTime, planRecords, uploadRecord } from '../site/format-records.ts';
import { imageRecords } from '../site/image-records.ts';
import { BUILD_RECORD, type BuildRecord, IMAGE_RECORD, PLAN_RECORD, UPLOAD_RECORD } from '../site/records.ts';
import { progressOf, silenceOf, workOf } from '../site/work.ts';
import { COUNT, recordSchema, TEXT, TIME } from '../terms/record-schema.ts';
import { CLOUD_IMAGE_RECORD } from './cloud-image-watch.ts';
import type { JobServerStatus, Site } from './site-view.ts';

const SERVER_RECORD = recordSchema({
  address: { ...TEXT, description: 'Host and port of the job server.' },
  answers: { type: 'boolean', description: 'The job server replies.' },
  queued: { ...COUNT, description: 'Jobs that wait for a builder.' },
  running: { ...COUNT, description: 'Jobs that builders run now.' },
});

/** Schema of {@link SiteRecords}. */
export const SITE_RECORDS = recordSchema({
  at: { ...TIME, description: 'Time of this state.' },
  images: { type: 'array', items: IMAGE_RECORD },
  builds: { type: 'array', items: BUILD_RECORD },
  uploads: { type: 'array', items: UPLOAD_RECORD },
  plan: { type: 'array', items: PLAN_RECORD },
  'cloud-images': { type: 'array', items: CLOUD_IMAGE_RECORD },
  builders: { type: 'array', items: BUILDER_STATUS },
  servers: { type: 'array', items: SERVER_RECORD },
  problems: { type: 'array', items: TEXT, description: 'Reason why data is missing here.' },
});

/** The data that the page and the API show. */
export type SiteRecords = SettingsOf<typeof SITE_RECORDS>;

const known = new WeakMap<Site, SiteRecords>();

/** Formats the records that the page and the API show, newest first. */
export function siteRecords(site: Site): SiteRecords {
  const before = known.get(site);
  if (before !== undefined) return before;
  const running = runningJobsOf(site.builders);
  const answers = site.servers.flatMap(({ functions }) => (functions === undefined ? [] : [functions]));
  const work = workOf(running, answers.length > 0 ? answers.flat() : undefined, site.builders.length);
  const silence = silenceOf(work);
  const { configuration, state } = site;
  const builds = [
    ...Array.from(state.builds.values(), (build) => buildRecord(build, work)),
    ...unrecordedBuilds(site, running),
  ].toSorted(byRequest);
  const uploads = Array.from(state.uploads.values(), (upload) => uploadRecord(upload, work)).toSorted(
    byRequest,
  );
  const plan =
    site.plan === undefined ? [] : planRecords(site.plan, configuration, state, [...builds, ...uploads]);
  const records = {
    at: isoTime(site.at),
    images: imageRecords({ configuration, state, builds, uploads, plan }),
    builds,
    uploads,
    plan,
    'cloud-images': site.cloudImages,
    builders: site.builders,
    servers: site.servers.map(toServerRecord),
    problems:
      silence === undefined ? site.problems : [...site.problems, `${silence}; restart it if it hangs`],
  };
  known.set(site, records);
  return records;
}

/** Sorts records, newest first. */
function byRequest(one: Pick<BuildRecord, 'requested'>, other: Pick<BuildRecord, 'requested'>): number {
  return (other.requested ?? '').localeCompare(one.requested ?? '');
}

/** Returns images that builders offer, and builds that they run, without a record of the manager. */
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
  reason: 'a job that the manager of this page did not submit',
  error: null,
  'cancelled-by': null,
  ...progressOf(undefined),
};

function toServerRecord({ address, functions }: JobServerStatus) {
  const jobs = functions ?? [];
  const running = jobs.reduce((sum, one) => sum + one.running, 0);
  const queued = jobs.reduce((sum, one) => sum + one.total, 0) - running;
  return { address, answers: functions !== undefined, queued, running };
}
