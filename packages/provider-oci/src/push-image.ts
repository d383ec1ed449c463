import { createHash } from 'node:crypto';
import { HashedReader, ImageError } from '@nodepool-builder/image-builder';
import { formatRow, hashed } from '@nodepool-builder/image-builder/internal';
import { uploadBlob } from './blob-upload.ts';
import { annotationsOf, type Descriptor, type NewManifest, tagOf } from './image-manifest.ts';
import { compressed, containerDisk, SUFFIXES } from './layer.ts';
import {
  blobState,
  type OciUpload,
  pushConfiguration,
  type SentLayer,
  type UploadRecord,
} from './oci-upload.ts';
import { MANIFEST_TYPE } from './registry.ts';

/** Artifact type, and prefix of the layer media types. */
const ARTIFACT = 'application/vnd.nodepool-builder.disk-image';

/** Configuration of an artifact (OCI image specification, "Guidance for an Empty Descriptor"). */
const EMPTY = Buffer.from('{}');

type Wrap = (pieces: AsyncIterable<Buffer>) => AsyncIterable<Buffer>;

/** Pushes a file as the only layer of an artifact, as ORAS does. @returns the manifest for the tag */
export async function pushArtifact(upload: OciUpload, { uploaded }: UploadRecord): Promise<NewManifest> {
  const { entry, request } = upload;
  const { format } = request.file;
  const { compression } = entry;
  const { blob, checksums } = await pushLayer(upload);
  const config = await pushConfiguration(upload, EMPTY);
  const suffix = compression === 'none' ? '' : `+${compression}`;
  const title = `${tagOf(request)}.${formatRow(format).extension}${SUFFIXES[compression]}`;
  return manifestOf({
    artifactType: `${ARTIFACT}.v1`,
    config: { mediaType: 'application/vnd.oci.empty.v1+json', ...config, data: EMPTY.toString('base64') },
    layers: [
      {
        mediaType: `${ARTIFACT}.${format}${suffix}`,
        ...blob,
        annotations: { 'org.opencontainers.image.title': title },
      },
    ],
    annotations: annotationsOf(upload, { uploaded, checksums }),
  });
}

/** Pushes a container image with the disk as its only file, for KubeVirt. @returns the manifest for the tag */
export async function pushContainerDisk(upload: OciUpload, record: UploadRecord): Promise<NewManifest> {
  const { format, size } = upload.request.file;
  const wrap: Wrap = (pieces) => containerDisk(`disk.${formatRow(format).extension}`, size, pieces);
  return await pushContainer(upload, record, wrap);
}

/** Pushes a container image with one layer. @param wrap converts the file to a tar */
export async function pushContainer(
  upload: OciUpload,
  { uploaded }: UploadRecord,
  wrap: Wrap,
): Promise<NewManifest> {
  const { entry, request } = upload;
  const { blob, diffId, checksums } = await pushLayer(upload, wrap);
  const created = request.builtAt?.toISOString() ?? uploaded;
  const content = {
    created,
    architecture: containerArchitecture(request.metadata?.architecture),
    os: 'linux',
    config: {},
    rootfs: { type: 'layers', diff_ids: [diffId] },
    history: [{ created, created_by: 'nodepool-builder' }],
  };
  const config = await pushConfiguration(upload, Buffer.from(JSON.stringify(content)));
  const suffix = entry.compression === 'none' ? '' : `+${entry.compression}`;
  return manifestOf({
    config: { mediaType: 'application/vnd.oci.image.config.v1+json', ...config },
    layers: [{ mediaType: `application/vnd.oci.image.layer.v1.tar${suffix}`, ...blob }],
    annotations: annotationsOf(upload, { uploaded, checksums }),
  });
}

/** Architectures with other names in container images. */
const ARCHITECTURES: Readonly<Record<string, string>> = {
  x86_64: 'amd64',
  aarch64: 'arm64',
  i386: '386',
  i686: '386',
};

function containerArchitecture(name = 'amd64'): string {
  return ARCHITECTURES[name] ?? name;
}

function manifestOf(content: {
  readonly artifactType?: string;
  readonly config: Descriptor & { readonly data?: string };
  readonly layers: readonly Descriptor[];
  readonly annotations: Readonly<Record<string, string>>;
}): NewManifest {
  return {
    type: MANIFEST_TYPE,
    text: JSON.stringify({ schemaVersion: 2, mediaType: MANIFEST_TYPE, ...content }),
  };
}

/** Sends the file as one blob. @throws ImageError if the file differs from what its builder created */
async function pushLayer(upload: OciUpload, wrap?: Wrap): Promise<SentLayer> {
  const { registry, entry, request, records, limit, signal, onProgress } = upload;
  const { path, size, checksums: known } = request.file;
  let layer: Pick<SentLayer, 'diffId' | 'checksums'> | undefined;
  const pieces = async function* (): AsyncGenerator<Buffer, void, undefined> {
    const reader = await HashedReader.open(path, {
      ...(known && { checksums: known }),
      signal,
      mayBeRemoved: true,
      // The upload ends with the manifest.
      onProgress: ({ done, total }) => onProgress({ done: Math.min(done, total * 0.99), total }),
    });
    try {
      if (reader.size !== size) throw changed(path, `it has ${reader.size} bytes, not ${size}`);
      const [file, tar] = [createHash('sha256'), createHash('sha256')];
      const content = hashed(reader.pieces(), file);
      yield* compressed(wrap === undefined ? content : hashed(wrap(content), tar), entry.compression);
      const checksums = await reader.checksums;
      const sha256 = file.digest('hex');
      if (checksums.sha256 !== sha256)
        throw changed(path, `its sha256 is ${sha256}, not ${checksums.sha256}`);
      layer = { diffId: `sha256:${wrap === undefined ? sha256 : tar.digest('hex')}`, checksums };
    } finally {
      await reader.close();
    }
  };
  // If the file or these settings change, the blob changes as well.
  const name = [entry.layout, entry.compression, request.file.format, known?.sha256 ?? size].join(' ');
  const { state, save } = await blobState(upload, name, () => layer);
  const { 'chunk-size': chunkSize } = entry;
  const blob = await uploadBlob({ registry, pieces, chunkSize, state, save, limit, signal });
  if (layer !== undefined) return { blob, ...layer };
  const { 'diff-id': diffId = '', md5 = '', sha256 = '' } = (await records.read(request.uploadId)) ?? {};
  return { blob, diffId, checksums: { md5, sha256 } };
}

function changed(path: string, how: string): ImageError {
  return new ImageError(
    'image-changed',
    `"${path}" is not the file that the builder created: ${how}; build the image again`,
  );
}
