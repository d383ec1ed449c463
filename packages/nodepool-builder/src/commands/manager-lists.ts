import type {
  Build,
  ManagerState,
  PreviewOptions,
  Step,
  UnrecordedImage,
} from '@nodepool-builder/image-manager';
import { Option } from 'commander';
import type { Configuration } from '../configuration/configuration.ts';
import { jobServers } from '../daemon/embedded-gearmand.ts';
import { Providers } from '../daemon/providers.ts';
import { toManagerConfiguration } from '../manager/manager-configuration.ts';
import type { ConfiguredCommand } from './configured-command.ts';
import { type StateView, withStateView, withStore } from './manager-store.ts';
import { printRecords, type ShownRecord, STANDARD_ERROR_LOGGER } from './output.ts';

/** A command that prints records as a table or as JSON. */
interface ListCommand extends Omit<ConfiguredCommand, 'run'> {
  readonly headings: readonly string[];
  /** Whether it works before the first run of a manager. */
  readonly isPreview?: true;
  readonly list: (configuration: Configuration, store: StateView) => Promise<readonly ShownRecord[]>;
}

const PLAN_HEADINGS = ['WHAT', 'SUBJECT', 'WHEN', 'WHY'];

const LISTS: readonly ListCommand[] = [
  {
    name: 'plan',
    summary: 'show what the manager would do next, and why',
    description:
      'Shows what the manager would do next, and what it waits for, each with the reason. It changes nothing, and ' +
      'the manager need not run. "dib-image-list" and "image-list" show the current builds and uploads.',
    headings: PLAN_HEADINGS,
    isPreview: true,
    list: planRecords,
  },
  {
    name: 'image-status',
    summary: 'show the newest image of each disk image in each provider',
    description:
      'Shows for each disk image its newest good image and the age of it, at the builders and in each provider.',
    headings: ['DISKIMAGE', 'PLACE', 'STATUS', 'READY', 'NEWEST', 'AGE'],
    list: async (configuration, store) => imageStatus(configuration, await store.read()),
  },
  {
    name: 'dib-image-list',
    summary: 'list the builds and their state',
    description:
      'Lists the builds in the records of the manager, with the reason for each and for each failure.',
    headings: ['IMAGE-ID', 'DISKIMAGE', 'STATE', 'AGE', 'WHY'],
    list: async (_, store) => [...(await store.read()).builds.values()].map(describeBuild),
  },
  {
    name: 'alien-image-list',
    summary: 'list images that are in no record of the manager',
    description:
      'Lists images in the providers and at the builders that are in no record of the manager. The manager deletes ' +
      'those with its own tag (OURS: yes) once it has found them twice in a row, and never touches the others.',
    headings: ['PLACE', 'IMAGE-ID', 'EXTERNAL-ID', 'UPLOAD-ID', 'OURS'],
    list: async (configuration, store) =>
      (await unrecordedImages(configuration, store)).map(describeUnrecorded),
  },
];

/** The commands that show the records of the manager, and what follows from them. */
export const MANAGER_LISTS: readonly ConfiguredCommand[] = LISTS.map(
  ({ headings, isPreview, list, ...row }) => ({
    ...row,
    options: [new Option('--json', 'print JSON')],
    run: async (configuration, { json }: { json?: true }) => {
      const withRecords = isPreview ? withStateView : withStore;
      const records = await withRecords(configuration, (store) => list(configuration, store));
      await printRecords(records, headings, json);
    },
  }),
);

/** Prints the manager's next steps, and the orphans that it would delete. Changes nothing. */
export async function dryRun(configuration: Configuration): Promise<void> {
  const [plan, images] = await withStateView(configuration, (store) =>
    Promise.all([planRecords(configuration, store), unrecordedImages(configuration, store)]),
  );
  const orphans = images.filter(({ isOurs }) => isOurs).map(toRemoval);
  await printRecords([...plan, ...orphans], PLAN_HEADINGS);
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
async function planRecords(configuration: Configuration, store: StateView): Promise<readonly ShownRecord[]> {
  const { previewPlan } = await import('@nodepool-builder/image-manager');
  const { steps, waits, laterBuilds } = await previewPlan(previewOptions(configuration, store));
  return [
    ...steps.map((step) => ({ what: step.kind, subject: subjectOf(step), why: step.reason, when: 'now' })),
    ...waits.map(({ subject, reason: why, until }) => ({ what: 'wait', subject, why, when: timeOf(until) })),
    ...laterBuilds.map((later) => {
      return { what: 'build', subject: later.diskimage, why: later.reason, when: timeOf(later.at) };
    }),
  ];
}

function timeOf(milliseconds: number | undefined): string | null {
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
  const { listUnrecordedImages } = await import('@nodepool-builder/image-manager');
  const providers = new Providers({ logger: () => STANDARD_ERROR_LOGGER, environment: process.env });
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

function describeUnrecorded(unrecorded: UnrecordedImage): ShownRecord {
  const ours = unrecorded.isOurs ? 'yes' : 'no';
  if (unrecorded.location === 'builder') return { place: 'builder', 'image-id': unrecorded.imageId, ours };
  const { imageId, externalId, uploadId = null } = unrecorded.image;
  const ids = { 'image-id': imageId, 'external-id': externalId, 'upload-id': uploadId };
  return { place: unrecorded.provider, ...ids, ours };
}

function describeBuild(build: Build): ShownRecord {
  const { id, diskimage, state, withdrawn, requestedAt, reason, error } = build;
  return {
    'image-id': id,
    diskimage,
    state,
    withdrawn,
    requested: timeOf(requestedAt),
    reason,
    error: error ?? null,
    why: error ?? (withdrawn ? 'rolled back' : reason),
  };
}

/** Describes the newest version of each disk image, on disk and in each provider. */
function imageStatus(configuration: Configuration, state: ManagerState): readonly ShownRecord[] {
  const builds = [...state.builds.values()]
    .filter(({ withdrawn }) => !withdrawn)
    .map((build) => ({ ...build, imageId: build.id }));
  const uploads = [...state.uploads.values()];
  return configuration.diskimages.flatMap(({ name: diskimage, pause }) => {
    const built = builds.filter((build) => build.diskimage === diskimage);
    const uploaded = uploads.filter((upload) => upload.diskimage === diskimage);
    const inProviders = configuration.providers.flatMap((provider) =>
      provider.entry.images
        .filter((image) => image.diskimage === diskimage)
        .map((image) => {
          const there = uploaded.filter(
            (upload) => upload.provider === provider.name && upload.imageName === image.name,
          );
          const isPaused = pause || provider.entry.pause || image.pause;
          return { diskimage, place: `${provider.name}/${image.name}`, ...statusOf(there, isPaused) };
        }),
    );
    return [{ diskimage, place: 'builders', ...statusOf(built, pause) }, ...inProviders];
  });
}

/** The part that a build and an upload have in common. */
interface Version {
  readonly state: string;
  readonly imageId: string;
  readonly requestedAt: number;
}

/** The newest ready version, and the state of the last one. */
function statusOf(versions: readonly Version[], isPaused: boolean): ShownRecord {
  const newestFirst = versions.toSorted((one, other) => other.requestedAt - one.requestedAt);
  const ready = newestFirst.filter(({ state }) => state === 'ready');
  const [newest] = ready;
  const last = newestFirst[0]?.state ?? '';
  const current = ['building', 'uploading', 'failed'].includes(last) ? last : newest && 'ready';
  return {
    status: isPaused ? 'paused' : (current ?? 'missing'),
    ready: String(ready.length),
    newest: newest?.imageId ?? null,
    requested: timeOf(newest?.requestedAt),
  };
}
