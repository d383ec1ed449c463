import { lstat, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { syncToDisk } from '../durable.ts';
import { ImageError } from '../errors.ts';
import { checkSelfContained } from '../formats/check-format.ts';
import type { ImageFormat } from '../formats.ts';
import { checksumsOf } from '../hashed-reader.ts';
import { MANIFEST, type Manifest, type ManifestFile, manifestTime } from '../manifest.ts';
import { IMAGE_DIRECTORY, IMAGE_FILE, setMode } from '../modes.ts';
import { RecordType } from '../record-directory.ts';
import { objectOf, type SettingsOf, TEXT } from '../settings-schema.ts';
import { unlessMissing } from '../system-error.ts';
import type { ImageFile, OperationOptions } from '../types.ts';
import { imageFileName, type Layout } from './layout.ts';
import type { Staging } from './staging.ts';

/** File whose presence in a staging directory means that all files are ready and only the renames remain. */
const JOURNAL_NAME = '.publication.json';
const MANIFEST_NAME = '.manifest.json';

const JOURNAL_SCHEMA = objectOf({
  imageId: TEXT,
  /** Names in the staging directory and in `images-dir`, in the order of the renames. */
  names: { type: 'array', items: TEXT },
});

const JOURNAL = new RecordType(JOURNAL_SCHEMA);

const DIGESTS = ['md5', 'sha256'] as const;

/**
 * Prepares finished files. Reads each once for its checksums, and flushes it to disk in the meantime.
 *
 * @throws like {@link findFiles}
 */
export async function describeFiles(
  staging: Staging,
  imageId: string,
  formats: readonly ImageFormat[],
  { signal, onProgress }: OperationOptions = {},
): Promise<ManifestFile[]> {
  const found = await findFiles(staging, imageId, formats);
  const total = found.reduce((sum, { size }) => sum + size, 0);
  const described: ManifestFile[] = [];
  let before = 0;
  for (const { format, path, size } of found) {
    await setMode(path, IMAGE_FILE);
    const reading = checksumsOf(path, {
      ...(signal && { signal }),
      onProgress: ({ done }) => onProgress?.({ done: before + done, total }),
    });
    const [checksums] = await Promise.all([reading, syncToDisk(path)]);
    before += size;
    const { mtimeMs } = await lstat(path);
    described.push({ format, size, mtime: manifestTime(mtimeMs), ...checksums });
  }
  return described;
}

/**
 * Finds the files that a build must have made.
 *
 * @throws ImageError `image-missing` if one does not exist or is empty, `image-not-self-contained`
 */
export async function findFiles(
  staging: Staging,
  imageId: string,
  formats: readonly ImageFormat[],
): Promise<ImageFile[]> {
  const find = async (format: ImageFormat): Promise<ImageFile> => {
    const name = imageFileName(imageId, format);
    const path = staging.path(name);
    const state = await unlessMissing(lstat(path));
    if (!state?.isFile() || state.size === 0) {
      const what =
        state === undefined ? 'was not made' : state.isFile() ? 'is empty' : 'is not a regular file';
      throw new ImageError('image-missing', `image file ${name} ${what}; see the build's log for the reason`);
    }
    await checkSelfContained({ path });
    return { format, path, size: state.size };
  };
  return await Promise.all(formats.map(find));
}

/**
 * Refuses to overwrite an image.
 *
 * @throws ImageError `image-exists`
 */
export async function refuseExisting(
  layout: Layout,
  imageId: string,
  formats: readonly ImageFormat[],
): Promise<void> {
  for (const format of formats) {
    const path = layout.image(imageId, format);
    if ((await unlessMissing(lstat(path))) === undefined) continue;
    throw new ImageError('image-exists', `"${path}" already exists; delete image ${imageId} first`);
  }
}

/**
 * Moves files of one image from a staging directory into `images-dir`: all or none, even in a crash.
 *
 * @param fresh the new files; the manifest may contain more
 * @throws ImageError `image-exists` if one of them already exists
 */
export async function publish(
  layout: Layout,
  staging: Staging,
  manifest: Manifest,
  fresh: readonly ManifestFile[],
): Promise<void> {
  const imageId = manifest['image-id'];
  const formats = fresh.map(({ format }) => format);
  await refuseExisting(layout, imageId, formats);
  const companions = await companionsOf(layout, staging, imageId, fresh);
  const names = [...companions, ...formats.map((format) => imageFileName(imageId, format))];
  await MANIFEST.write(staging.path(MANIFEST_NAME), manifest);
  await JOURNAL.write(staging.path(JOURNAL_NAME), { imageId, names });
  try {
    await carryOut(layout, staging, { imageId, names });
  } catch (error) {
    await rm(staging.path(JOURNAL_NAME));
    for (const name of names) await moveIfThere(join(layout.root, name), staging.path(name));
    throw error;
  }
}

/**
 * Completes a publication that was interrupted by a crash.
 *
 * @returns the image id; undefined if the image was not ready
 * @throws DamagedRecordError
 */
export async function completePublication(layout: Layout, staging: Staging): Promise<string | undefined> {
  const journal = await JOURNAL.read(staging.path(JOURNAL_NAME));
  if (journal !== undefined) await carryOut(layout, staging, journal);
  return journal?.imageId;
}

async function carryOut(
  layout: Layout,
  staging: Staging,
  { imageId, names }: SettingsOf<typeof JOURNAL_SCHEMA>,
): Promise<void> {
  for (const name of names) await moveIfThere(staging.path(name), join(layout.root, name));
  await moveIfThere(staging.path(MANIFEST_NAME), layout.manifest(imageId));
  await syncToDisk(layout.root);
  await syncToDisk(layout.manifests);
}

async function moveIfThere(from: string, to: string): Promise<void> {
  const isDirectory = (await unlessMissing(lstat(from)))?.isDirectory() === true;
  // rename(2) replaces a file, but not a directory with entries, such as one of a deleted image.
  if (isDirectory) await rm(to, { recursive: true, force: true });
  await unlessMissing(rename(from, to));
}

/** Finds the other output of disk-image-create: `<image-id>.d` and checksum files. */
async function companionsOf(
  layout: Layout,
  staging: Staging,
  imageId: string,
  fresh: readonly ManifestFile[],
): Promise<string[]> {
  const names: string[] = [];
  const directory = staging.path(`${imageId}.d`);
  if ((await unlessMissing(lstat(directory)))?.isDirectory()) {
    await setMode(directory, IMAGE_DIRECTORY);
    names.push(`${imageId}.d`);
  }
  for (const file of fresh) {
    for (const digest of DIGESTS) {
      const name = `${imageFileName(imageId, file.format)}.${digest}`;
      if ((await unlessMissing(lstat(staging.path(name)))) === undefined) continue;
      // disk-image-create wrote the path of the staging directory, where md5sum would look for the image.
      await writeFile(staging.path(name), `${file[digest]}  ${layout.image(imageId, file.format)}\n`);
      await setMode(staging.path(name), IMAGE_FILE);
      names.push(name);
    }
  }
  return names;
}
