import { createReadStream, createWriteStream } from 'node:fs';
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join, parse } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { ProviderModule, UploadResult } from '@nodepool-builder/image-builder';
import type { CloudImage, CloudUpload } from '@nodepool-builder/image-builder/plugin';
import { CloudImages, cloudImage } from '@nodepool-builder/image-builder/plugin';

const FOLDER = { type: 'string', format: 'directory', description: 'Where images are stored.' } as const;
const description = 'a folder with a record next to each image';
const properties = { folder: FOLDER };
const settings = { type: 'object', description, required: ['folder'], properties } as const;

/** Stores each image as a file, named after its upload. A record next to it is written first, and removed last. */
export class FolderProvider extends CloudImages<{ readonly name: string; readonly folder: string }> {
  protected async listImages(): Promise<readonly CloudImage[]> {
    const files = await readdir(this.entry.folder);
    const records = files.filter((file) => file.endsWith('.json'));
    return await Promise.all(
      records.map(async (record) => {
        const { name, tags, uploadedAt } = JSON.parse(await readFile(this.#path(record), 'utf8'));
        const { name: externalId } = parse(record);
        const facts = { isComplete: files.includes(externalId), createdAt: new Date(uploadedAt) };
        return cloudImage({ externalId, name, properties: tags, ...facts });
      }),
    );
  }

  protected async makeImage(upload: CloudUpload): Promise<UploadResult> {
    const { request, name, tags, signal, onProgress } = upload;
    const { uploadId, file } = request;
    const record = JSON.stringify({ name, tags, uploadedAt: new Date() });
    await this.#store(`${uploadId}.json`, (path) => writeFile(path, record));
    const source = createReadStream(file.path, { signal });
    source.on('data', () => onProgress({ done: source.bytesRead, total: file.size }));
    await this.#store(uploadId, (path) => pipeline(source, createWriteStream(path)));
    return { externalId: uploadId };
  }

  protected async removeImage({ externalId }: CloudImage): Promise<void> {
    for (const end of ['', '.new', '.json']) await rm(this.#path(externalId + end), { force: true });
  }

  async #store(name: string, write: (path: string) => Promise<void>): Promise<void> {
    await write(this.#path(`${name}.new`));
    await rename(this.#path(`${name}.new`), this.#path(name));
  }

  #path(name: string): string {
    return join(this.entry.folder, name);
  }
}

export default {
  type: 'folder',
  settings,
  images: { open: (entry, services) => new FolderProvider({ entry, ...services }) },
} satisfies ProviderModule<typeof settings>;
