import type { SettingsOf } from '@nodepool-builder/image-builder';
import {
  listUnrecordedImages,
  newestFirst,
  type PreviewOptions,
  previewPlan,
  type UnrecordedImage,
} from '@nodepool-builder/image-manager';
import { Option } from 'commander';
import type { Configuration } from '../configuration/configuration.ts';
import { jobServers } from '../configuration/gearman-server.ts';
import { toManagerConfiguration } from '../configuration/manager-configuration.ts';
import { buildRecord, planRecords, uploadRecord } from '../site/format-records.ts';
import { imageRecords, statusRecords } from '../site/image-records.ts';
import { Providers } from '../site/providers.ts';
import type { PlanRecord, StatusRecord } from '../site/records.ts';
import { isUnfinished, warnWithoutManager } from '../site/served-request.ts';
import { type StateView, withStateView, withStore } from '../site/state-view.ts';
import { STANDARD_ERROR_LOGGER } from '../terms/command-error.ts';
import { recordSchema, TEXT_OR_NULL } from '../terms/record-schema.ts';
import { type ConfiguredCommand, configured } from './configured-command.ts';
import { showOrigin } from './image-origin.ts';
import { readState } from './manager-work.ts';
import { PROGRESS_COLUMN } from './progress.ts';
import {
  ageColumn,
  type Column,
  EXTERNAL_ID,
  formatTime,
  PROVIDER_COLUMN,
  printRecords,
  type ShownRecord,
} from './table.ts';

/** A command that prints records as a table or as JSON. */
interface ListCommand extends Omit<ConfiguredCommand, 'run'> {
  readonly columns: readonly Column[];
  /** Sentence in place of an empty table. */
  readonly ifEmpty?: string;
  /** True if the command works before the first run of a manager. */
  readonly isPreview?: true;
  /** Shows one subject if the operand names one. */
  readonly show?: (configuration: Configuration, subject: string, json?: true) => Promise<void>;
  readonly list: (configuration: Configuration, store: StateView) => Promise<readonly ShownRecord[]>;
  /** Returns whether a record is true only while a manager runs. Default: every record is. */
  readonly needsManager?: (record: ShownRecord) => boolean;
}

/** Schema of a record of `alien-image-list`. */
export const UNRECORDED_IMAGE_RECORD = recordSchema({
  provider: { ...TEXT_OR_NULL, description: '`providers[].name`; null at a builder.' },
  'image-id': { ...TEXT_OR_NULL, description: 'Id of the image, if known.' },
  'external-id': { ...TEXT_OR_NULL, description: 'Id in the provider; null at a builder.' },
  'upload-id': { ...TEXT_OR_NULL, description: 'Id of the upload, if the image has one.' },
  ours: { type: 'boolean', description: 'The image has the tag of this manager, which then deletes it.' },
});

/** Columns of `plan`. */
const PLAN_COLUMNS: readonly Column[] = [
  { heading: 'WHAT' },
  { heading: 'SUBJECT', long: 'words' },
  { heading: 'WHEN', format: formatTime },
  { heading: 'REASON', long: 'words' },
];

const NOTHING_DUE = 'nothing is due, and nothing waits';

/** Describes who paused a disk image, if anyone. */
function pauseText(paused: string, { 'paused-by': by, 'paused-since': since }: ShownRecord): string {
  if (paused !== 'true') return '-';
  return by === null ? 'by the configuration' : `by ${String(by)} since ${formatTime(String(since))}`;
}

const LISTS: readonly ListCommand[] = [
  {
    name: 'plan',
    description:
      'Shows what the manager would do next, and what it waits for, each with the reason. It changes nothing, and ' +
      'the manager need not run. A deletion that failed is listed as "now", although the manager pauses before it ' +
      'tries again; its log has the error and the pause. "dib-image-list" and "image-list" show the current builds ' +
      'and uploads.',
    columns: PLAN_COLUMNS,
    ifEmpty: NOTHING_DUE,
    isPreview: true,
    list: readPlan,
  },
  {
    name: 'image-status',
    description:
      'Shows for each disk image its newest good image and the age of it, at the builders and in each provider, and ' +
      'the error if the last build or upload there failed. With the id of an image, shows what it was built from, ' +
      'which packages changed since the previous build, and the proof states of its uploads.',
    argument: ['[image-id]', 'id of an image, as dib-image-list shows it'],
    show: showOrigin,
    columns: [
      { heading: 'DISKIMAGE' },
      PROVIDER_COLUMN,
      { heading: 'STATE' },
      { heading: 'READY' },
      { heading: 'NEWEST', long: 'id' },
      ageColumn('newest-requested'),
      PROGRESS_COLUMN,
      { heading: 'PAUSED', format: pauseText, sparse: true, long: 'words' },
      { heading: 'ERROR', long: 'words' },
    ],
    list: readStatus,
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
      { heading: 'ERROR', long: 'words', sparse: true },
    ],
    needsManager: isUnfinished,
    list: async (configuration, store) => {
      const { builds, work } = await readState(configuration, store);
      return Array.from(builds.values(), (build) => buildRecord(build, work));
    },
  },
  {
    name: 'alien-image-list',
    description:
      'Lists images in the providers and at the builders that have no record of the manager. The manager deletes ' +
      'images with its own tag (OURS: yes) once it has found them twice in a row, and never touches the others.',
    columns: [
      { heading: 'PROVIDER', empty: 'builders', long: 'id' },
      { heading: 'IMAGE-ID' },
      { heading: 'UPLOAD-ID' },
      { heading: 'OURS', format: (ours) => (ours === 'true' ? 'yes' : 'no') },
      EXTERNAL_ID,
    ],
    list: async (configuration, store) =>
      (await unrecordedImages(configuration, store)).map(describeUnrecorded),
  },
];

/** The commands that show the manager's records, and what follows from them. */
export const register = configured(
  ...LISTS.map(
    ({ columns, ifEmpty, isPreview, show, list, needsManager = () => true, ...row }): ConfiguredCommand => ({
      ...row,
      options: [new Option('--json', 'print JSON')],
      run: async (site, { json }: { json?: true }, subject) => {
        const configuration = await site.configuration();
        if (show !== undefined && subject !== '') {
          await show(configuration, subject, json);
          return;
        }
        const print = async (store: StateView): Promise<void> => {
          const records = await list(configuration, store);
          await printRecords(records, columns, json, ifEmpty);
          if (!json && records.some(needsManager)) await warnWithoutManager(store);
        };
        await (isPreview ? withStateView(configuration, print) : withStore(configuration, print));
      },
    }),
  ),
);

/** Prints the manager's next steps, and the orphans that it would delete. Changes nothing. */
export async function dryRun(configuration: Configuration): Promise<void> {
  const [plan, images] = await withStateView(configuration, (store) =>
    Promise.all([readPlan(configuration, store), unrecordedImages(configuration, store)]),
  );
  const orphans = images.filter(({ isOurs }) => isOurs).map(toRemoval);
  await printRecords([...plan, ...orphans], PLAN_COLUMNS, false, NOTHING_DUE);
}

function toRemoval(orphan: UnrecordedImage): ShownRecord {
  const subject =
    orphan.location === 'builder'
      ? `${orphan.imageId} at a builder`
      : `${orphan.image.externalId} in ${orphan.provider}`;
  const reason = 'it is tagged as ours, but has no record';
  return { what: 'delete-orphan', subject, when: 'seen twice', reason };
}

/** The manager's next steps, its waits and its later builds. */
async function readPlan(configuration: Configuration, store: StateView): Promise<readonly PlanRecord[]> {
  const [plan, { work, ...state }] = await Promise.all([
    previewPlan(previewOptions(configuration, store)),
    readState(configuration, store),
  ]);
  const builds = Array.from(state.builds.values(), (build) => buildRecord(build, work));
  const uploads = Array.from(state.uploads.values(), (upload) => uploadRecord(upload, work));
  return planRecords(plan, configuration, state, [...builds, ...uploads]);
}

function previewOptions(configuration: Configuration, store: StateView): PreviewOptions {
  return {
    configuration: toManagerConfiguration(configuration),
    store,
    servers: jobServers(configuration),
    logger: STANDARD_ERROR_LOGGER,
  };
}

/** Lists the images in providers and at builders that have no record of the manager. */
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
    return { provider: null, 'image-id': imageId, 'external-id': null, 'upload-id': null, ours };
  }
  const { imageId, externalId, uploadId = null } = unrecorded.image;
  const ids = { 'image-id': imageId ?? null, 'external-id': externalId, 'upload-id': uploadId };
  return { provider: unrecorded.provider, ...ids, ours };
}

/** Summarises each disk image at the builders and in each provider. */
async function readStatus(configuration: Configuration, store: StateView): Promise<readonly StatusRecord[]> {
  const { work, ...state } = await readState(configuration, store);
  const builds = newestFirst([...state.builds.values()]).map((build) => buildRecord(build, work));
  const uploads = newestFirst([...state.uploads.values()]).map((upload) => uploadRecord(upload, work));
  return statusRecords(imageRecords({ configuration, state, builds, uploads }));
}
