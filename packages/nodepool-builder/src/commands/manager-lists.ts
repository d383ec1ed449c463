import type { SettingsOf } from '@nodepool-builder/image-builder';
import {
  type Build,
  listUnrecordedImages,
  type ManagerState,
  newestFirst,
  type PreviewOptions,
  previewPlan,
  type Step,
  type UnrecordedImage,
  whyPaused,
} from '@nodepool-builder/image-manager';
import { Option } from 'commander';
import type { Configuration } from '../configuration/configuration.ts';
import { jobServers } from '../configuration/gearman-server.ts';
import { toManagerConfiguration } from '../configuration/manager-configuration.ts';
import { functionName } from '../protocol/functions.ts';
import { PROGRESS_PROPERTIES } from '../site/builder-status.ts';
import { progressText } from '../site/progress-text.ts';
import { Providers } from '../site/providers.ts';
import { warnWithoutManager } from '../site/served-request.ts';
import { obsoleteIn, shownError, shownState, sumUp } from '../site/shown-state.ts';
import { type StateView, withStateView, withStore } from '../site/state-view.ts';
import { standingOf, type Work } from '../site/work.ts';
import { STANDARD_ERROR_LOGGER } from '../terms/command-error.ts';
import { COUNT, recordSchema, TEXT, TEXT_OR_NULL, TIME, TIME_OR_NULL } from '../terms/record-schema.ts';
import type { ConfiguredCommand } from './configured-command.ts';
import { describeUpload } from './image-list.ts';
import { showOrigin } from './image-origin.ts';
import { readState } from './manager-work.ts';
import { PROGRESS_COLUMN } from './progress.ts';
import { ageColumn, type Column, EXTERNAL_ID, formatTime, printRecords, type ShownRecord } from './table.ts';

/** A command that prints records as a table or as JSON. */
interface ListCommand extends Omit<ConfiguredCommand, 'run'> {
  readonly columns: readonly Column[];
  /** Sentence in place of an empty table. */
  readonly ifEmpty?: string;
  /** Whether it works before the first run of a manager. */
  readonly isPreview?: true;
  /** Shows one subject, if the operand names one. */
  readonly show?: (configuration: Configuration, subject: string, json?: true) => Promise<void>;
  readonly list: (configuration: Configuration, store: StateView) => Promise<readonly ShownRecord[]>;
}

/** Schema of a record of `plan`. */
export const PLAN_RECORD = recordSchema({
  what: {
    enum: [
      'build',
      'upload',
      'resume-build',
      'resume-upload',
      'delete-build',
      'delete-upload',
      'discard',
      'prune',
      'wait',
    ],
    description: 'The step. `wait`: a step has to wait. `prune`: records are deleted.',
  },
  subject: { ...TEXT, description: 'Disk image, id of the image, or id of the upload.' },
  when: { ...TEXT_OR_NULL, description: '`now`, or a time; null if it depends on an event.' },
  why: { ...TEXT, description: 'The reason.' },
});

/** Schema of a record of `image-status`. */
export const STATUS_RECORD = recordSchema({
  diskimage: { ...TEXT, description: '`diskimages[].name`.' },
  place: { ...TEXT, description: '`builders`, or `PROVIDER/IMAGE`, as in `providers[].images[].name`.' },
  status: {
    enum: ['paused', 'queued', 'building', 'uploading', 'ready', 'failed', 'cancelled', 'missing'],
    description:
      'State of the last build or upload there, ignoring images that were rolled back. `missing`: there is no ready image.',
  },
  ready: { ...COUNT, description: 'Number of ready images.' },
  newest: { ...TEXT_OR_NULL, description: 'Id of the newest ready image.' },
  requested: { ...TIME_OR_NULL, description: 'Time at which that image was requested there.' },
  error: {
    ...TEXT_OR_NULL,
    description: 'Why it has this status: the error of a failure, or who cancelled it.',
  },
  waiting: { ...TEXT_OR_NULL, description: 'Thing that it waits for, such as a free builder.' },
  retrying: {
    ...TEXT_OR_NULL,
    description: 'While requests fail: the number of the attempt, and the last error.',
  },
  'paused-by': { ...TEXT_OR_NULL, description: 'Who paused the disk image, unless the configuration does.' },
  'paused-since': { ...TIME_OR_NULL, description: 'Time at which that was.' },
});

/** Schema of a record of `dib-image-list`. */
export const BUILD_RECORD = recordSchema({
  'image-id': { ...TEXT, description: 'Id of the image.' },
  diskimage: { ...TEXT, description: '`diskimages[].name`.' },
  state: {
    enum: ['queued', 'building', 'ready', 'failed', 'cancelled', 'deleting', 'deleted'],
    description: 'State of the build.',
  },
  withdrawn: { type: 'boolean', description: 'Whether it was rolled back.' },
  requested: { ...TIME, description: 'Time of the request.' },
  reason: { ...TEXT, description: 'Why it was requested.' },
  error: { ...TEXT_OR_NULL, description: 'Why it failed.' },
  ...PROGRESS_PROPERTIES,
});

/** Schema of a record of `alien-image-list`. */
export const UNRECORDED_IMAGE_RECORD = recordSchema({
  place: { ...TEXT, description: '`builder`, or the name of the provider.' },
  'image-id': { ...TEXT_OR_NULL, description: 'Id of the image, if it is known.' },
  'external-id': { ...TEXT_OR_NULL, description: 'Id in the provider; null at a builder.' },
  'upload-id': { ...TEXT_OR_NULL, description: 'Id of the upload, if the image has one.' },
  ours: { type: 'boolean', description: 'Whether it has the tag of this manager, which then deletes it.' },
});

/** Columns of `plan`. */
const PLAN_COLUMNS: readonly Column[] = [
  { heading: 'WHAT' },
  { heading: 'SUBJECT', long: 'words' },
  { heading: 'WHEN', format: formatTime },
  { heading: 'WHY', long: 'words' },
];

const NOTHING_DUE = 'nothing is due, and nothing waits';

/** The place of an image; a name that says nothing new is left out: `east` for `east/debian`. */
const PLACE: Column = {
  heading: 'PLACE',
  format: (place, { diskimage }) =>
    place.endsWith(`/${String(diskimage)}`) ? place.slice(0, place.lastIndexOf('/')) : place,
};

const LISTS: readonly ListCommand[] = [
  {
    name: 'plan',
    description:
      'Shows what the manager would do next, and what it waits for, each with the reason. It changes nothing, and ' +
      'the manager need not run. "dib-image-list" and "image-list" show the current builds and uploads.',
    columns: PLAN_COLUMNS,
    ifEmpty: NOTHING_DUE,
    isPreview: true,
    list: planRecords,
  },
  {
    name: 'image-status',
    description:
      'Shows for each disk image its newest good image and the age of it, at the builders and in each provider, and ' +
      'the error if the last build or upload there failed. With the id of an image, shows what it was built from, ' +
      'which packages changed since the build before, and where the proofs of its uploads stand.',
    argument: ['[image-id]', 'id of an image, as dib-image-list shows it'],
    show: showOrigin,
    columns: [
      { heading: 'DISKIMAGE' },
      PLACE,
      { heading: 'STATUS' },
      { heading: 'READY' },
      { heading: 'NEWEST', long: 'id' },
      ageColumn('requested'),
      { heading: 'WHY', key: 'status', format: whyOf, long: 'words' },
    ],
    list: async (configuration, store) =>
      await imageStatus(configuration, await readState(configuration, store)),
  },
  {
    name: 'dib-image-list',
    description:
      'Lists the builds in the records of the manager, with the reason of each request and the error of each failure.',
    columns: [
      { heading: 'IMAGE-ID' },
      {
        heading: 'STATE',
        format: (state, { withdrawn }) => (withdrawn === true ? `${state}, rolled back` : state),
      },
      PROGRESS_COLUMN,
      ageColumn('requested'),
      { heading: 'REASON', long: 'words' },
      { heading: 'WHY', key: 'error', long: 'words', sparse: true },
    ],
    list: async (configuration, store) => {
      const { builds, work } = await readState(configuration, store);
      return Array.from(builds.values(), (build) => describeBuild(build, work));
    },
  },
  {
    name: 'alien-image-list',
    description:
      'Lists images in the providers and at the builders that are in no record of the manager. The manager deletes ' +
      'those with its own tag (OURS: yes) once it has found them twice in a row, and never touches the others.',
    columns: [
      { heading: 'PLACE', long: 'id' },
      { heading: 'IMAGE-ID' },
      { heading: 'UPLOAD-ID' },
      { heading: 'OURS', format: (ours) => (ours === 'true' ? 'yes' : 'no') },
      EXTERNAL_ID,
    ],
    list: async (configuration, store) =>
      (await unrecordedImages(configuration, store)).map(describeUnrecorded),
  },
];

/** The commands that show the records of the manager, and what follows from them. */
export const MANAGER_LISTS: readonly ConfiguredCommand[] = LISTS.map(
  ({ columns, ifEmpty, isPreview, show, list, ...row }) => ({
    ...row,
    options: [new Option('--json', 'print JSON')],
    run: async (site, { json }: { json?: true }, subject) => {
      const configuration = await site.configuration();
      if (show !== undefined && subject !== '') {
        await show(configuration, subject, json);
        return;
      }
      const withRecords = isPreview ? withStateView : withStore;
      await withRecords(configuration, async (store) => {
        const records = await list(configuration, store);
        await printRecords(records, columns, json, ifEmpty);
        if (!json) await warnWithoutManager(store, records);
      });
    },
  }),
);

/** Prints the manager's next steps, and the orphans that it would delete. Changes nothing. */
export async function dryRun(configuration: Configuration): Promise<void> {
  const [plan, images] = await withStateView(configuration, (store) =>
    Promise.all([planRecords(configuration, store), unrecordedImages(configuration, store)]),
  );
  const orphans = images.filter(({ isOurs }) => isOurs).map(toRemoval);
  await printRecords([...plan, ...orphans], PLAN_COLUMNS, false, NOTHING_DUE);
}

function toRemoval(orphan: UnrecordedImage): ShownRecord {
  const subject =
    orphan.location === 'builder'
      ? `${orphan.imageId} at a builder`
      : `${orphan.image.externalId} in ${orphan.provider}`;
  const why = 'it is tagged as ours, and is in no record';
  return { what: 'remove-leak', subject, when: 'seen twice', why };
}

/** The manager's next steps, its waits and its later builds. */
async function planRecords(
  configuration: Configuration,
  store: StateView,
): Promise<readonly SettingsOf<typeof PLAN_RECORD>[]> {
  const { steps, waits, laterBuilds } = await previewPlan(previewOptions(configuration, store));
  return [
    ...steps.map((step) => ({ what: step.kind, subject: subjectOf(step), when: 'now', why: step.reason })),
    ...waits.map(({ subject, reason: why, until }) => {
      return { what: 'wait', subject, when: isoTime(until), why } as const;
    }),
    ...laterBuilds.map(({ diskimage: subject, reason: why, at }) => {
      return { what: 'build', subject, when: isoTime(at), why } as const;
    }),
  ];
}

function isoTime(milliseconds: number | undefined): string | null {
  return milliseconds === undefined ? null : new Date(milliseconds).toISOString();
}

function previewOptions(configuration: Configuration, store: StateView): PreviewOptions {
  return {
    configuration: toManagerConfiguration(configuration),
    store,
    servers: jobServers(configuration),
    logger: STANDARD_ERROR_LOGGER,
  };
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

/** Lists the images in providers and at builders that are in no record of the manager. */
async function unrecordedImages(
  configuration: Configuration,
  store: StateView,
): Promise<readonly UnrecordedImage[]> {
  const providers = new Providers({ logger: () => STANDARD_ERROR_LOGGER });
  providers.configure(configuration);
  try {
    return await listUnrecordedImages(
      previewOptions(configuration, store),
      (name) => providers.get(name)?.provider,
      new AbortController().signal,
    );
  } finally {
    providers[Symbol.dispose]();
  }
}

function describeUnrecorded(unrecorded: UnrecordedImage): SettingsOf<typeof UNRECORDED_IMAGE_RECORD> {
  const { isOurs: ours } = unrecorded;
  if (unrecorded.location === 'builder') {
    const { imageId } = unrecorded;
    return { place: 'builder', 'image-id': imageId, 'external-id': null, 'upload-id': null, ours };
  }
  const { imageId, externalId, uploadId = null } = unrecorded.image;
  const ids = { 'image-id': imageId ?? null, 'external-id': externalId, 'upload-id': uploadId };
  return { place: unrecorded.provider, ...ids, ours };
}

function describeBuild(build: Build, work?: Work): SettingsOf<typeof BUILD_RECORD> {
  const { id, diskimage, withdrawn, requestedAt, reason } = build;
  return {
    'image-id': id,
    diskimage,
    withdrawn,
    requested: new Date(requestedAt).toISOString(),
    reason,
    error: shownError(build),
    ...standingOf({ id, state: shownState(build), job: functionName('image-build', diskimage) }, work),
  };
}

type BuildRow = ReturnType<typeof describeBuild>;
type UploadRow = ReturnType<typeof describeUpload>;

/** Says who paused a disk image, what failed, or what it waits for. */
function whyOf(status: string, record: ShownRecord): string {
  const { error, 'paused-by': by, 'paused-since': since } = record;
  if (status !== 'paused') return typeof error === 'string' ? error : progressText(record) || '-';
  return typeof by === 'string' ? `paused by ${by} since ${String(since)}` : 'paused by the configuration';
}

/** Sums up each disk image at the builders and in each provider. */
async function imageStatus(
  configuration: Configuration,
  { work, ...state }: ManagerState & { readonly work?: Work },
): Promise<readonly SettingsOf<typeof STATUS_RECORD>[]> {
  const isObsolete = obsoleteIn(configuration.diskimages, state);
  const builds = newestFirst([...state.builds.values()]).map((build) => describeBuild(build, work));
  const uploads = Map.groupBy(newestFirst([...state.uploads.values()]), (one) => one.diskimage);
  return configuration.diskimages.flatMap((configured) => {
    const { name: diskimage } = configured;
    const paused = whyPaused(state, configured);
    const record = paused === undefined ? undefined : state.pauses.get(diskimage);
    const pause = { 'paused-by': record?.by ?? null, 'paused-since': isoTime(record?.since) };
    const statusAt = (place: string, records: readonly (BuildRow | UploadRow)[], isPaused: boolean) => {
      const { newest, state: status, ...more } = sumUp(records, isObsolete);
      const requested = newest?.requested ?? null;
      return {
        diskimage,
        place,
        ...more,
        ...pause,
        status: isPaused ? ('paused' as const) : status,
        newest: newest?.['image-id'] ?? null,
        requested,
      };
    };
    const built = builds.filter((build) => build.diskimage === diskimage);
    const inProviders = configuration.providers.flatMap(({ name: provider, entry }) =>
      entry.images
        .filter((image) => image.diskimage === diskimage)
        .map((image) => {
          const there = (uploads.get(diskimage) ?? [])
            .filter((upload) => upload.provider === provider && upload.imageName === image.name)
            .map((upload) => describeUpload(upload, work));
          const isPaused = paused !== undefined || entry.pause || image.pause;
          return statusAt(`${provider}/${image.name}`, there, isPaused);
        }),
    );
    return [statusAt('builders', built, paused !== undefined), ...inProviders];
  });
}
