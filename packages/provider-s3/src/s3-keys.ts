import { createHash } from 'node:crypto';
import type { ImageFormat } from '@nodepool-builder/image-builder';
import { checkImageName, formatRow } from '@nodepool-builder/image-builder/module-kit';

/** End of the key of a manifest. */
const MANIFEST_END = /-[0-9a-f]{8}\.[a-z0-9-]+\.json$/;

/** Properties of an image that its key has. */
export interface NamedImage {
  readonly uploadId: string;
  readonly imageId: string;
  readonly imageName: string;
  readonly format: ImageFormat;
}

/** Identifies an upload in the metadata of its object. Upload ids can have characters that headers cannot. */
export function uploadDigest(uploadId: string): string {
  return createHash('sha256').update(uploadId).digest('hex');
}

/** End of the name of an object that an upload makes. */
function endOf(uploadId: string): string {
  return `-${uploadDigest(uploadId).slice(0, 8)}.`;
}

/** Whether the object of an image belongs to an upload. */
export function isNamedBy(uploadId: string, externalId: string): boolean {
  return externalId.includes(endOf(uploadId));
}

/**
 * The external id of an image. It ends with a digest of the upload id: no other upload writes to this key, so everything
 * there can be removed with its upload.
 *
 * @throws ImageError `provider-refused` if it is no valid name of a file
 */
export function externalIdOf(provider: string, { uploadId, imageId, imageName, format }: NamedImage): string {
  const name = `${imageName}-${imageId}${endOf(uploadId)}${formatRow(format).extension}`;
  checkImageName(provider, name);
  return name;
}

/** The keys of the objects of one provider. */
export class S3Keys {
  /** Empty, or with a slash at its end: the objects of prefix `ab` are not those of prefix `a`. */
  readonly prefix: string;

  constructor(prefix = '') {
    this.prefix = prefix === '' || prefix.endsWith('/') ? prefix : `${prefix}/`;
  }

  image(externalId: string): string {
    return this.prefix + externalId;
  }

  manifest(externalId: string): string {
    return `${this.prefix}${externalId}.json`;
  }

  /** Beginning of the keys of attestations. Lists of images do not contain them, because of the slash. */
  attestations(externalId: string): string {
    return `${this.prefix}${externalId}.d/`;
  }

  /** The manifest of the image that was built last. */
  latest(imageName: string, format: ImageFormat): string {
    return this.manifest(`${imageName}-latest.${formatRow(format).extension}`);
  }

  /** Records of unfinished uploads. */
  get records(): string {
    return `${this.prefix}.nodepool-builder/`;
  }

  record(uploadId: string): string {
    return `${this.records}${encodeURIComponent(uploadId)}.json`;
  }

  /** The image that a key is the manifest of; undefined for other keys. */
  externalId(key: string): string | undefined {
    return MANIFEST_END.test(key) ? key.slice(this.prefix.length, -'.json'.length) : undefined;
  }
}
