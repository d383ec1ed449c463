import { type Image, ImageError, readImages } from '@nodepool-builder/image-builder';
import type { Upload } from '@nodepool-builder/image-manager';
import { Option } from 'commander';
import type { Configuration } from '../configuration/configuration.ts';
import { jobServers } from '../daemon/embedded-gearmand.ts';
import { askServers } from '../daemon/fleet.ts';
import { functionName, subjectOf } from '../daemon/functions.ts';
import type { ConfiguredCommand } from './configured-command.ts';
import { hasStore, withStore } from './manager-store.ts';
import { printRecords, type ShownRecord, warn } from './output.ts';

/** `image-list`: the uploads in the records of the manager; without a manager, the images that builders offer. */
export const IMAGE_LIST: ConfiguredCommand = {
  name: 'image-list',
  summary: 'list images in providers, or at builders',
  description:
    'Lists the images in the providers, from the records of the manager. Without a manager, and with --offered, it ' +
    'lists the images that builders offer to the job servers and those in images-dir of this host.',
  options: [
    new Option('--offered', 'list what builders offer, even if there is a manager'),
    new Option('--json', 'print JSON'),
  ],
  run: async (configuration, { json, offered }: { json?: true; offered?: true }) => {
    if (offered || !hasStore(configuration)) {
      await printRecords(await offeredImages(configuration), OFFERED_HEADINGS, json);
    } else {
      const { uploads } = await withStore(configuration, (store) => store.read());
      await printRecords([...uploads.values()].map(describeUpload), UPLOAD_HEADINGS, json);
    }
  },
};

const UPLOAD_HEADINGS = ['IMAGE-ID', 'UPLOAD-ID', 'PROVIDER', 'IMAGE', 'EXTERNAL-ID', 'STATE', 'AGE'];

function describeUpload(upload: Upload): ShownRecord {
  return {
    'image-id': upload.imageId,
    'upload-id': upload.id,
    provider: upload.provider,
    'image-name': upload.imageName,
    'external-id': upload.externalId ?? null,
    state: upload.state,
    requested: new Date(upload.requestedAt).toISOString(),
    reason: upload.reason,
    error: upload.error ?? null,
  };
}

const OFFERED_HEADINGS = ['IMAGE-ID', 'IMAGE-NAME', 'FORMATS', 'SIZE', 'BUILT', 'BUILDERS'];

/** Images that builders offer to the job servers, and those in `images-dir` of this host. */
async function offeredImages(configuration: Configuration): Promise<readonly ShownRecord[]> {
  const [functions, local] = await Promise.all([
    askServers(jobServers(configuration), (admin) => admin.status()),
    readLocalImages(configuration['images-dir']),
  ]);
  const builders = new Map<string, number>();
  for (const { name, availableWorkers } of functions) {
    if (!name.startsWith(functionName('image-upload', '')) || availableWorkers === 0) continue;
    const id = subjectOf(name);
    builders.set(id, (builders.get(id) ?? 0) + availableWorkers);
  }
  const here = new Map(local.map((image) => [image.id, image]));
  const ids = new Set([...here.keys(), ...builders.keys()]);
  return [...ids]
    .toSorted((a, b) => a.localeCompare(b))
    .map((id) => describeImage(id, here.get(id), builders.get(id) ?? 0));
}

/** A host that only submits jobs may have no such directory. */
async function readLocalImages(directory: string): Promise<Image[]> {
  try {
    return await readImages(directory);
  } catch (error) {
    if (!(error instanceof ImageError)) throw error;
    warn(`listing only the images at the job servers: ${error.message}`);
    return [];
  }
}

/** @param image undefined if it is on other hosts only */
function describeImage(id: string, image: Image | undefined, builders: number): ShownRecord {
  return {
    'image-id': id,
    'image-name': image?.name ?? null,
    formats: image?.files.map(({ format }) => format) ?? [],
    size: image?.files.reduce((sum, { size }) => sum + size, 0) ?? null,
    built: image?.builtAt.toISOString() ?? null,
    builders,
  };
}
