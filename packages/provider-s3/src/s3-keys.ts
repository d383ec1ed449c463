import { createHash } from 'node:crypto';
import type { ImageFormat } from '@nodepool-builder/image-builder';
import { checkImageName, formatRow } from '@nodepool-builder/image-builder/internal';

/** Suffix of a manifest key. */
const MANIFEST_END = /-[0-9a-f]{8}\.[a-z0-9-]+\.json$/;

/** Image properties that are part of its key. */
export interface NamedImage {
  readonly uploadId: string;
  readonly imageId: string;
  readonly imageName: string;
  readonly format: ImageFormat;
}

/**
 * Identifies an upload in the metadata of its object. Upload ids may contain characters that are invalid in headers.
 */
export function uploadDigest(uploadId: string): string {
  return createHash('sha256').update(uploadId).digest('hex');
}

/** Returns the suffix of an upload's object names. */
function endOf(uploadId: string): string {
  return `-${uploadDigest(uploadId).slice(0, 8)}.`;
}

/** Returns whether an image's object belongs to an upload. */
export function isNamedBy(uploadId: string, externalId: string): boolean {
  return externalId.includes(endOf(uploadId));
}

/**
 * Returns the external id of an image. It ends with a digest of the upload id. No other upload writes to this key, so
 * everything below it can be removed together with its upload.
 *
 * @throws ImageError `provider-refused` if it is not a valid file name
 */
export function externalIdOf(provider: string, { uploadId, imageId, imageName, format }: NamedImage): string {
  const name = `${imageName}-${imageId}${endOf(uploadId)}${formatRow(format).extension}`;
  checkImageName(provider, name);
  return name;
}

/** Object keys of one provider. */
export class S3Keys {
  /** Prefix of all keys. Empty, or with a trailing slash, so that prefix `ab` and prefix `a` stay apart. */
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

  /** Returns the key prefix of attestations. Lists of images do not contain them, because of the slash. */
  attestations(externalId: string): string {
    return `${this.prefix}${externalId}.d/`;
  }

  /** Returns the manifest key of the latest build. */
  latest(imageName: string, format: ImageFormat): string {
    return this.manifest(`${imageName}-latest.${formatRow(format).extension}`);
  }

  /** Key prefix of the records of unfinished uploads. */
  get records(): string {
    return `${this.prefix}.nodepool-builder/`;
  }

  record(uploadId: string): string {
    return `${this.records}${encodeURIComponent(uploadId)}.json`;
  }

  /** Returns the image that a manifest key belongs to; undefined for other keys. */
  externalId(key: string): string | undefined {
    return MANIFEST_END.test(key) ? key.slice(this.prefix.length, -'.json'.length) : undefined;
  }
}
