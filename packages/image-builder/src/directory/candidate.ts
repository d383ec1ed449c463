import { splitTags } from '../image-filter/split-tags.ts';
import type { ImageCandidate } from '../types.ts';
import type { DirectoryManifest } from './manifest.ts';

/** An image in a directory as filters see it. Its name is that of its file; its times are those of its manifest. */
export function toCandidate(externalId: string, manifest: DirectoryManifest): ImageCandidate {
  const { metadata = {} } = manifest;
  return {
    externalId,
    name: externalId,
    imageName: manifest['image-name'],
    imageId: manifest['image-id'],
    status: 'whole',
    isUsable: true,
    isOwn: true,
    ...(metadata.architecture !== undefined && { architecture: metadata.architecture }),
    tags: splitTags(metadata.tags),
    properties: metadata,
    createdAt: new Date(manifest.uploaded),
    builtAt: new Date(manifest.built),
  };
}
