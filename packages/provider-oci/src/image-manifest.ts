import type { Checksums, UploadRequest } from '@nodepool-builder/image-builder';
import { fileTags, objectOf, readImageTags, TEXT } from '@nodepool-builder/image-builder/internal';
import {
  type CloudImage,
  type CloudUpload,
  cloudImage,
  JsonReader,
  type TaggedImage,
} from '@nodepool-builder/image-builder/plugin';
import { INDEX_TYPE, type StoredManifest } from './registry.ts';

/** Annotation with the upload time. */
const UPLOADED = 'nodepool_upload_time';

export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** A manifest to push. */
export interface NewManifest {
  readonly type: string;
  readonly text: string;
}

/** An image of this provider in its repository. */
export interface OciImage extends TaggedImage {
  readonly tag: string;
  readonly manifest: StoredManifest;
  readonly annotations: Readonly<Record<string, string>>;
  readonly uploadedAt: Date;
}

/** Returns the tag of an image. */
export function tagOf({ imageName, imageId }: Pick<UploadRequest, 'imageName' | 'imageId'>): string {
  return `${imageName}-${imageId}`;
}

/** Returns the tag of the latest build of an image name. */
export function latestTag(imageName: string): string {
  return tagOf({ imageName, imageId: 'latest' });
}

/** Returns the annotations of an image's manifest. */
export function annotationsOf(
  { request, name, tags }: CloudUpload,
  { uploaded, checksums }: { readonly uploaded: string; readonly checksums: Checksums },
): Record<string, string> {
  return {
    'org.opencontainers.image.title': name,
    'org.opencontainers.image.version': request.imageId,
    'org.opencontainers.image.created': request.builtAt?.toISOString() ?? uploaded,
    ...tags,
    ...fileTags({ ...request.file, checksums }),
    [UPLOADED]: uploaded,
  };
}

/** Validates a manifest. It may be foreign, so properties that are not used are not validated. */
const READER = new JsonReader({ type: 'object', properties: { annotations: {}, manifests: {} } });

const DESCRIPTOR = new JsonReader(objectOf({ digest: TEXT }, { mediaType: {} }));

/** Reads a manifest; undefined if the provider did not push it. */
export function readImage(provider: string, tag: string, manifest: StoredManifest): OciImage | undefined {
  const texts = Object.entries(Object(parse(manifest.text)?.annotations)).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  );
  const annotations = Object.fromEntries(texts);
  const tagged = readImageTags(annotations);
  if (tagged?.provider !== provider) return undefined;
  const uploaded = Date.parse(annotations[UPLOADED] ?? '');
  return {
    ...tagged,
    tag,
    manifest,
    annotations,
    uploadedAt: new Date(Number.isNaN(uploaded) ? 0 : uploaded),
  };
}

/** Media types of manifests that refer to other manifests. */
const INDEX_TYPES: ReadonlySet<unknown> = new Set([
  INDEX_TYPE,
  'application/vnd.docker.distribution.manifest.list.v2+json',
]);

/** Returns the digests of all manifests that indexes refer to, including nested indexes. */
export async function digestsBelow(
  manifests: Iterable<StoredManifest>,
  read: (digest: string) => Promise<StoredManifest | undefined>,
): Promise<Set<string>> {
  const found = new Set<string>();
  const queue = [...manifests];
  for (const { text } of queue) {
    const named = parse(text)?.manifests;
    for (const { digest, mediaType } of DESCRIPTOR.valid(Array.isArray(named) ? named : [])) {
      if (found.has(digest)) continue;
      found.add(digest);
      const index = INDEX_TYPES.has(mediaType) ? await read(digest) : undefined;
      if (index !== undefined) queue.push(index);
    }
  }
  return found;
}

function parse(text: string): ReturnType<(typeof READER)['parse']> | undefined {
  try {
    return READER.parse(text);
  } catch {
    return undefined;
  }
}

/** Describes an image. @param externalId the tag with its repository */
export function describeImage(externalId: string, image: OciImage): CloudImage<OciImage> {
  return cloudImage({
    native: image,
    externalId,
    name: image.tag,
    status: 'pushed',
    isComplete: true,
    tagged: image,
    properties: image.annotations,
    createdAt: image.uploadedAt,
  });
}
