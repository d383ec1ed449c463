import { type Image, ImageError, readImages, type SettingsOf } from '@nodepool-builder/image-builder';
import { formatBytes } from '@nodepool-builder/image-builder/internal';
import type { StateStore } from '@nodepool-builder/image-manager';
import { Option } from 'commander';
import type { Configuration } from '../configuration/configuration.ts';
import { jobServers } from '../configuration/gearman-server.ts';
import { functionName, subjectOf } from '../protocol/functions.ts';
import { askServers } from '../site/ask-servers.ts';
import type { LocatedJob } from '../site/builder-status.ts';
import { uploadRecord } from '../site/format-records.ts';
import { progressText } from '../site/progress-text.ts';
import { isUnfinished, warnWithoutManager } from '../site/served-request.ts';
import { withStore } from '../site/state-view.ts';
import { warn } from '../terms/command-error.ts';
import { COUNT, recordSchema, TEXT, TEXT_OR_NULL, TIME_OR_NULL } from '../terms/record-schema.ts';
import { configured } from './configured-command.ts';
import { readState, readWork } from './manager-work.ts';
import { PROGRESS_COLUMN } from './progress.ts';
import { ageColumn, type Column, EXTERNAL_ID, PROVIDER_COLUMN, printRecords } from './table.ts';

/** `image-list`: lists the uploads in the manager's records or, without a manager, the images that builders offer. */
export const register = configured({
  name: 'image-list',
  description:
    'Lists the images in the providers, from the records of the manager. Without a manager, and with --offered, it ' +
    'lists the images that builders offer to the job servers and those in images-dir of this host.',
  options: [
    new Option('--offered', 'list what builders offer, even if there is a manager'),
    new Option('--json', 'print JSON'),
  ],
  run: async (site, { json, offered }: { json?: true; offered?: true }) => {
    const configuration = await site.configuration();
    const listOffered = async (): Promise<void> =>
      await printRecords(await offeredImages(configuration), OFFERED_COLUMNS, json);
    const listUploads = async (store: StateStore): Promise<void> => {
      const { uploads, work } = await readState(configuration, store);
      const records = Array.from(uploads.values(), (upload) => uploadRecord(upload, work));
      await printRecords(records, UPLOAD_COLUMNS, json);
      if (!json && records.some(isUnfinished)) await warnWithoutManager(store);
    };
    await (offered ? listOffered() : withStore(configuration, listUploads, listOffered));
  },
});

const UPLOAD_COLUMNS: readonly Column[] = [
  { heading: 'IMAGE-ID' },
  { heading: 'UPLOAD-ID' },
  PROVIDER_COLUMN,
  { heading: 'STATE' },
  PROGRESS_COLUMN,
  ageColumn('requested'),
  EXTERNAL_ID,
  { heading: 'ERROR', long: 'words' },
];

/** Schema of an image that builders offer. */
export const OFFERED_IMAGE_RECORD = recordSchema({
  'image-id': { ...TEXT, description: 'Id of the image.' },
  'image-name': { ...TEXT_OR_NULL, description: 'Disk image, if the image is in images-dir of this host.' },
  formats: { type: 'array', items: TEXT, description: 'Formats in images-dir of this host.' },
  size: {
    type: ['integer', 'null'],
    description: 'Size in bytes of all its files in images-dir of this host.',
  },
  built: { ...TIME_OR_NULL, description: 'Time of the build, if the image is in images-dir of this host.' },
  builders: { ...COUNT, description: 'Number of workers that offer it.' },
  running: {
    type: 'array',
    items: TEXT,
    description: 'Its build or uploads that run now, if their builders reply.',
  },
});

const OFFERED_COLUMNS: readonly Column[] = [
  { heading: 'IMAGE-ID' },
  { heading: 'IMAGE-NAME' },
  { heading: 'FORMATS' },
  { heading: 'SIZE', format: (size) => formatBytes(Number(size)) },
  ageColumn('built'),
  { heading: 'BUILDERS' },
  { heading: 'RUNNING', sparse: true, long: 'id' },
];

type OfferedImage = SettingsOf<typeof OFFERED_IMAGE_RECORD>;

/** Lists the images that builders offer to the job servers, and the images in `images-dir` of this host. */
async function offeredImages(configuration: Configuration): Promise<readonly OfferedImage[]> {
  const [functions, local, { jobs }] = await Promise.all([
    askServers(jobServers(configuration), (admin) => admin.status()),
    readLocalImages(configuration['images-dir']),
    readWork(jobServers(configuration)),
  ]);
  const builders = new Map<string, number>();
  for (const { name, availableWorkers } of functions) {
    if (!name.startsWith(functionName('image-upload', '')) || availableWorkers === 0) continue;
    const id = subjectOf(name);
    builders.set(id, (builders.get(id) ?? 0) + availableWorkers);
  }
  const here = new Map(local.map((image) => [image.id, image]));
  const running = Map.groupBy(jobs.values(), (job) => job['image-id']);
  const ids = new Set([...here.keys(), ...builders.keys(), ...running.keys()]);
  return [...ids]
    .toSorted((a, b) => a.localeCompare(b))
    .map((id) => {
      const image = here.get(id); // undefined if only other hosts have it
      return {
        'image-id': id,
        'image-name': image?.name ?? null,
        formats: image?.files.map(({ format }) => format) ?? [],
        size: image?.files.reduce((sum, { size }) => sum + size, 0) ?? null,
        built: image?.builtAt.toISOString() ?? null,
        builders: builders.get(id) ?? 0,
        running: (running.get(id) ?? []).map(describeJob),
      };
    });
}

/** Returns no images if the directory is missing, as on a host that only submits jobs. */
async function readLocalImages(directory: string): Promise<Image[]> {
  try {
    return await readImages(directory);
  } catch (error) {
    if (!(error instanceof ImageError)) throw error;
    warn(`listing only the images at the job servers: ${error.message}`);
    return [];
  }
}

function describeJob(job: LocatedJob): string {
  const what = job.kind === 'build' ? 'build' : `upload to ${job.provider}`;
  return `${what} on ${job.host}: ${progressText(job)}`;
}
