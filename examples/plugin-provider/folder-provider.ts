import { createReadStream, createWriteStream } from 'node:fs';
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import {
  type CloudImage,
  CloudImages,
  type CloudUpload,
  cloudImage,
  cloudImageName,
  fileTags,
  type ImageServices,
  imageTags,
  type ProviderEntry,
  type ProviderModule,
  type UploadResult,
} from '@nodepool-builder/image-builder';

const FOLDER = { type: 'string', format: 'directory', description: 'Where images are stored.' } as const;
const description = 'a folder with a record next to each image';
const settings = {
  type: 'object',
  description,
  required: ['folder'],
  properties: { folder: FOLDER },
} as const;

export default { type: 'folder', settings, images: { open } } satisfies ProviderModule<typeof settings>;

type Entry = ProviderEntry<typeof settings>;
type Services = Pick<ImageServices, 'formats' | 'logger'>;

function open({ name, folder }: Entry, { formats, logger }: Services): FolderProvider {
  return new FolderProvider(folder, { name, formats, logger });
}

/** Stores each image as a file, named after its upload, and a record that exists as long as the file does. */
class FolderProvider extends CloudImages {
  readonly #folder: string;

  constructor(folder: string, options: ConstructorParameters<typeof CloudImages>[0]) {
    super(options);
    this.#folder = folder;
  }

  protected async ownImages(): Promise<readonly CloudImage[]> {
    const records = (await readdir(this.#folder)).filter((name) => name.endsWith('.json'));
    const images = await Promise.all(
      records.map(async (name) => await this.getImage(basename(name, '.json'))),
    );
    return images.flatMap((image) => (image?.tagged?.provider === this.name ? [image] : []));
  }

  protected async getImage(externalId: string): Promise<CloudImage | undefined> {
    const names = await readdir(this.#folder);
    if (!names.includes(`${externalId}.json`)) return undefined;
    const { name, status, tags, uploadedAt } = JSON.parse(await readFile(this.#record(externalId), 'utf8'));
    return cloudImage({
      native: undefined,
      externalId,
      name,
      status,
      isComplete: status === 'stored',
      properties: tags,
      createdAt: new Date(uploadedAt),
    });
  }

  protected async makeImage({ request, signal, onProgress }: CloudUpload): Promise<UploadResult> {
    const { uploadId, file, metadata } = request;
    const tags = { ...metadata, ...imageTags(this.name, request), ...fileTags(file) };
    const record = { name: cloudImageName(request), tags, uploadedAt: new Date() };
    await this.#write(uploadId, { ...record, status: 'uploading' });
    const source = createReadStream(file.path, { signal });
    source.on('data', () => onProgress({ done: source.bytesRead, total: file.size }));
    await pipeline(source, createWriteStream(join(this.#folder, uploadId)));
    await this.#write(uploadId, { ...record, status: 'stored' });
    return { externalId: uploadId };
  }

  protected async removeImage({ externalId }: Pick<CloudImage, 'externalId'>): Promise<void> {
    await rm(join(this.#folder, externalId), { force: true });
    await rm(this.#record(externalId), { force: true }); // last: until then the image is found again
  }

  protected async removeUpload(uploadId: string): Promise<void> {
    await this.removeImage({ externalId: uploadId });
  }

  #record(externalId: string): string {
    return join(this.#folder, `${externalId}.json`);
  }

  async #write(uploadId: string, record: object): Promise<void> {
    const path = this.#record(uploadId);
    await writeFile(`${path}.new`, JSON.stringify(record));
    await rename(`${path}.new`, path);
  }
}
