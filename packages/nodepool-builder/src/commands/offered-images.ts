import { type Image, ImageError, readImages } from '@nodepool-builder/image-builder';
import type { Configuration } from '../configuration/configuration.ts';
import { jobServers } from '../daemon/embedded-gearmand.ts';
import { functionName, subjectOf } from '../daemon/functions.ts';
import { functionsOf } from './follow-job.ts';
import { textTable } from './text-table.ts';

/** One image in the list. */
interface ListedImage {
  readonly 'image-id': string;
  /** Name of the disk image; null if unknown, as of an image on another host. */
  readonly 'image-name': string | null;
  /** Formats in `images-dir` of this host. */
  readonly formats: readonly string[];
  /** Size of its files on this host, in bytes. */
  readonly size: number | null;
  readonly built: string | null;
  /** Number of builders that offer to upload and to delete it. */
  readonly builders: number;
}

/** Prints the images that builders offer to the job servers, and those in `images-dir` of this host. */
export async function printOfferedImages(configuration: Configuration, json: boolean): Promise<void> {
  const images = await listImages(configuration);
  console.log(json ? JSON.stringify(images, null, 2) : await formatTable(images));
}

async function listImages(configuration: Configuration): Promise<ListedImage[]> {
  const [functions, local] = await Promise.all([
    functionsOf(jobServers(configuration)),
    readLocalImages(configuration.imagesDir),
  ]);
  const builders = new Map<string, number>();
  for (const { name, availableWorkers } of functions) {
    if (!name.startsWith(functionName('image-upload', '')) || availableWorkers === 0) continue;
    const id = subjectOf(name);
    builders.set(id, (builders.get(id) ?? 0) + availableWorkers);
  }
  const here = new Map(local.map((image) => [image.id, image]));
  const ids = [...new Set([...here.keys(), ...builders.keys()])].toSorted((a, b) => a.localeCompare(b));
  return ids.map((id) => describeImage(id, here.get(id), builders.get(id) ?? 0));
}

/** A host that only submits jobs may have no such directory. */
async function readLocalImages(directory: string): Promise<Image[]> {
  try {
    return await readImages(directory);
  } catch (error) {
    if (!(error instanceof ImageError)) throw error;
    console.error(`nodepool-builder: listing only the images at the job servers: ${error.message}`);
    return [];
  }
}

function describeImage(id: string, image: Image | undefined, builders: number): ListedImage {
  return {
    'image-id': id,
    'image-name': image?.name ?? null,
    formats: image?.files.map(({ format }) => format) ?? [],
    size: image?.files.reduce((sum, { size }) => sum + size, 0) ?? null,
    built: image?.builtAt.toISOString() ?? null,
    builders,
  };
}

async function formatTable(images: readonly ListedImage[]): Promise<string> {
  const header = ['IMAGE-ID', 'IMAGE-NAME', 'FORMATS', 'SIZE', 'BUILT', 'BUILDERS'];
  const rows = images.map((image) => [
    image['image-id'],
    image['image-name'] ?? '-',
    image.formats.join(',') || '-',
    image.size === null ? '-' : `${(image.size / 2 ** 20).toFixed(1)} MiB`,
    image.built ?? '-',
    String(image.builders),
  ]);
  return await textTable(header, rows);
}
