import { pipeline, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { createGunzip } from 'node:zlib';
import {
  ImageError,
  type ImageFormat,
  type SettingsOf,
  type SettingsSchema,
} from '@nodepool-builder/image-builder';
import { checksumsOf, objectOf, TEXT } from '@nodepool-builder/image-builder/internal';
import { JsonReader } from '@nodepool-builder/image-builder/plugin';
import { uploadBlob } from './blob-upload.ts';
import { annotationsOf, type Descriptor, type NewManifest } from './image-manifest.ts';
import { addManifest, blobState, type OciUpload, type UploadRecord } from './oci-upload.ts';
import { pushArtifact, pushContainer, pushContainerDisk } from './push-image.ts';
import { INDEX_TYPE } from './registry.ts';
import { readTar, type TarFile, tarContent } from './tar-reader.ts';

/** Max manifest size that registries must accept, in bytes. */
const MAX_MANIFEST_SIZE = 4 * 2 ** 20;

const DESCRIPTOR = objectOf(
  { mediaType: TEXT, digest: TEXT, size: { type: 'integer', minimum: 0 } },
  { urls: { type: 'array', items: TEXT } },
);

/** A manifest or an index. */
const MANIFEST = new JsonReader({
  type: 'object',
  properties: {
    config: DESCRIPTOR,
    layers: { type: 'array', items: DESCRIPTOR },
    manifests: { type: 'array', items: DESCRIPTOR },
  },
});

const CONFIG = new JsonReader({
  type: 'object',
  properties: { architecture: TEXT, os: TEXT, variant: TEXT },
});

type Content = ReturnType<(typeof MANIFEST)['parse']>;
type BlobDescriptor = NonNullable<Content['config']>;

/** Formats that can become a container image. All other formats are disks. */
const ARCHIVES: ReadonlySet<ImageFormat> = new Set(['tar', 'tgz']);

/** Pushes everything of an image except the tag. @returns the manifest for the tag */
export async function pushImage(upload: OciUpload, record: UploadRecord): Promise<NewManifest> {
  const { entry, request } = upload;
  const { layout } = entry;
  const { format } = request.file;
  if (layout === 'artifact') return await pushArtifact(upload, record);
  if ((layout === 'container-image') !== ARCHIVES.has(format)) {
    const reason = `layout: ${layout} does not support images of format ${format}`;
    throw new ImageError(
      'provider-refused',
      `provider ${entry.name}: ${reason}; correct image-type or layout`,
    );
  }
  const push = layout === 'container-image' ? pushContainerImage : pushContainerDisk;
  return await push(upload, record);
}

/**
 * Pushes a container image. The images of an archive in the OCI layout are pushed unchanged, below an index with our
 * annotations. Any other tar becomes the only layer of an image.
 *
 * @returns the manifest for the tag
 */
async function pushContainerImage(upload: OciUpload, record: UploadRecord): Promise<NewManifest> {
  const { format, path } = upload.request.file;
  if (format === 'tgz') {
    return await pushContainer(upload, record, unzip);
  }
  const files = new Map<string, TarFile>();
  for await (const file of readTar(path)) {
    if (/^(?:oci-layout|index\.json|manifest\.json|blobs\/.*)$/.test(file.name)) files.set(file.name, file);
  }
  if (files.has('oci-layout') && files.has('index.json')) return await pushArchive(upload, record, files);
  if (!files.has('manifest.json')) return await pushContainer(upload, record, (pieces) => pieces);
  throw new ImageError(
    'provider-refused',
    `"${path}" is a docker archive, not an OCI archive; save it with podman save --format oci-archive`,
  );
}

function unzip(pieces: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  // An error while reading the file ends the iteration.
  return pipeline(Readable.from(copies(pieces)), createGunzip(), () => {});
}

/** Copies chunks, because their memory is reused and streams read ahead. */
async function* copies(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  for await (const piece of pieces) yield Buffer.from(piece);
}

async function pushArchive(
  upload: OciUpload,
  { uploaded }: UploadRecord,
  files: ReadonlyMap<string, TarFile>,
): Promise<NewManifest> {
  const { file } = upload.request;
  const archive = new Archive(upload, files);
  const { manifests = [] } = await archive.parse(MANIFEST, 'index.json');
  if (manifests.length === 0) throw archive.damaged('its index refers to no image');
  const pushed: Descriptor[] = [];
  for (const descriptor of manifests) pushed.push(...(await archive.push(descriptor)));
  const checksums = file.checksums ?? (await checksumsOf(file.path, { signal: upload.signal }));
  const annotations = annotationsOf(upload, { uploaded, checksums });
  const index = { schemaVersion: 2, mediaType: INDEX_TYPE, manifests: pushed, annotations };
  return { type: INDEX_TYPE, text: JSON.stringify(index) };
}

/** An archive in the OCI layout, as written by `podman save --format oci-archive`. */
class Archive {
  readonly #upload: OciUpload;
  readonly #files: ReadonlyMap<string, TarFile>;
  #done = 0;

  constructor(upload: OciUpload, files: ReadonlyMap<string, TarFile>) {
    this.#upload = upload;
    this.#files = files;
  }

  /**
   * Pushes a manifest with its blobs, or the manifests of an index. buildx nests an index in the archive's index, and
   * podman and skopeo pull no image below two.
   *
   * @returns the descriptors of the manifests, with their platforms
   */
  async push(descriptor: BlobDescriptor): Promise<readonly Descriptor[]> {
    const { registry, signal } = this.#upload;
    const { digest, mediaType } = descriptor;
    const name = blobName(digest);
    const { config, layers = [], manifests = [] } = await this.parse(MANIFEST, name);
    const below: Descriptor[] = [];
    for (const child of manifests) below.push(...(await this.push(child)));
    if (below.length > 0) return below;
    for (const blob of config === undefined ? layers : [config, ...layers]) await this.#pushBlob(blob);
    await addManifest(this.#upload, digest);
    await registry.putManifest(digest, mediaType, (await this.#read(name)).toString(), signal);
    return config === undefined || 'platform' in descriptor
      ? [descriptor]
      : [{ ...descriptor, ...(await this.#platform(config)) }];
  }

  async parse<S extends SettingsSchema>(reader: JsonReader<S>, name: string): Promise<SettingsOf<S>> {
    const text = (await this.#read(name)).toString();
    return reader.parse(text, (reason) => this.damaged(`in ${name}, ${reason}`));
  }

  damaged(reason: string): ImageError {
    const { path } = this.#upload.request.file;
    return new ImageError(
      'provider-refused',
      `the archive "${path}" is damaged: ${reason}; build the image again`,
    );
  }

  /** Returns the platform, by which runtimes choose an image from an index. */
  async #platform({ digest }: BlobDescriptor): Promise<{ readonly platform?: object }> {
    const { architecture, os, variant } = await this.parse(CONFIG, blobName(digest));
    return architecture && os ? { platform: { architecture, os, ...(variant && { variant }) } } : {};
  }

  async #read(name: string): Promise<Buffer> {
    const file = this.#find(name);
    if (file.size > MAX_MANIFEST_SIZE) throw this.damaged(`${name} has ${file.size} bytes`);
    return await buffer(tarContent(this.#upload.request.file.path, file));
  }

  #find(name: string): TarFile {
    const file = this.#files.get(name);
    if (file === undefined) throw this.damaged(`${name} is missing`);
    return file;
  }

  async #pushBlob({ digest, urls }: BlobDescriptor): Promise<void> {
    // A layer with a URL of its own is not distributed.
    if (urls !== undefined && urls.length > 0) return;
    const { registry, entry, request, limit, signal, onProgress } = this.#upload;
    const { path, size: total } = request.file;
    const file = this.#find(blobName(digest));
    if (!(await registry.hasBlob(digest, signal))) {
      const { state, save } = await blobState(this.#upload, digest);
      const { 'chunk-size': chunkSize } = entry;
      const pieces = (): AsyncIterable<Buffer> => tarContent(path, file);
      const blob = await uploadBlob({ registry, pieces, chunkSize, state, save, limit, signal });
      if (blob.digest !== digest) throw this.damaged(`${digest} has the digest ${blob.digest}`);
    }
    this.#done += file.size;
    onProgress({ done: Math.min(this.#done, total * 0.99), total });
  }
}

function blobName(digest: string): string {
  return `blobs/${digest.replace(':', '/')}`;
}
