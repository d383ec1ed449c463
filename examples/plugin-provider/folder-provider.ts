import { createReadStream, createWriteStream } from 'node:fs';
import { mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import * as core from '@nodepool-builder/image-builder';

const FOLDER = { type: 'string', format: 'directory', description: 'Where images are stored.' } as const;
const DESCRIPTION = { type: 'object', description: 'a folder with a record next to each image' } as const;
const settings = { ...DESCRIPTION, required: ['folder'], properties: { folder: FOLDER } } as const;
export default { type: 'folder', settings, images: { open } } satisfies core.ProviderModule;

const withDates = (key: string, value: string): unknown => (key.endsWith('At') ? new Date(value) : value);
type Entry = core.ProviderEntry<typeof settings>;
type Services = Pick<core.ImageServices, 'formats'>;

/** Stores each image as a directory, named after its upload: the file, and a record. */
function open({ name, folder }: Entry, { formats }: Services): core.ImageProvider {
  const remove = (entry: string): Promise<void> => rm(join(folder, entry), { recursive: true, force: true });
  const list = async (): Promise<readonly (core.ProviderImage & core.ImageCandidate)[]> => {
    const entries = (await readdir(folder)).filter((entry) => !entry.startsWith('.'));
    const texts = await Promise.all(entries.map((entry) => readFile(join(folder, entry, 'record'), 'utf8')));
    return texts.map((text) => JSON.parse(text, withDates));
  };
  return {
    name,
    formats,
    list,
    findImages: list,
    delete: remove,
    async discard(uploadId) {
      const partial = (await readdir(folder)).filter((entry) => entry.startsWith(`.${uploadId}.`));
      await Promise.all([uploadId, ...partial].map(remove));
    },
    async upload(request, { signal, onProgress } = {}) {
      const { uploadId, file } = request;
      const partial = await mkdtemp(join(folder, `.${uploadId}.`));
      try {
        const source = createReadStream(file.path, signal && { signal });
        source.on('data', () => onProgress?.({ done: source.bytesRead, total: file.size }));
        await pipeline(source, createWriteStream(join(partial, 'image')));
        await writeFile(join(partial, 'record'), JSON.stringify(recordOf(request)));
        await rename(partial, join(folder, uploadId)).catch((error: NodeJS.ErrnoException) => {
          if (error.code !== 'ENOTEMPTY') throw error; // else another call has stored the image of this upload
        });
      } finally {
        await rm(partial, { recursive: true, force: true });
      }
      return { externalId: uploadId };
    },
  };
}

function recordOf({ file, metadata = {}, externalName, ...upload }: core.UploadRequest): object {
  const { path: _, ...stored } = file;
  const image = { ...upload, ...stored, externalId: upload.uploadId, uploadedAt: new Date() };
  const { architecture, tags } = metadata;
  const name = externalName ?? `${upload.imageName}-${upload.imageId}`;
  const details = { name, architecture, tags: core.splitTags(tags), properties: metadata };
  return { ...image, ...details, createdAt: image.uploadedAt, status: 'stored', isUsable: true, isOwn: true };
}
