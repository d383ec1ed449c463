import { createHash, type Hash } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import {
  asImageError,
  ImageError,
  type ImageFormat,
  isImageFormat,
  type OperationOptions,
  type StoredCapture,
} from '@nodepool-builder/image-builder';
import { writeSparse } from '../../write-sparse.ts';
import type { GlanceImage } from '../glance-image.ts';
import { OpenStackError } from '../openstack-error.ts';
import { ByteProgress } from '../upload/byte-progress.ts';
import { BUILD_ID } from '../upload/image-properties.ts';
import { retry } from '../upload/retry.ts';
import { storedDigest } from '../upload/verify-image.ts';
import type { InstanceCloud } from './instance-cloud.ts';
import { obeying } from './obeying.ts';

/** An image that Nova made of a server; it lies in Glance. */
export class CapturedSnapshot implements StoredCapture {
  readonly externalId: string;
  readonly imageId: string;
  readonly formats: readonly ImageFormat[];
  readonly #cloud: InstanceCloud;
  readonly #image: GlanceImage;

  constructor(cloud: InstanceCloud, image: GlanceImage) {
    const { id, diskFormat } = image;
    this.externalId = id;
    this.imageId = String(image.properties[BUILD_ID]);
    this.#cloud = cloud;
    this.#image = image;
    this.formats = isImageFormat(diskFormat) ? [diskFormat] : [];
  }

  /** @throws OpenStackError */
  async save(format: ImageFormat, path: string, options: OperationOptions = {}): Promise<void> {
    if (!this.formats.includes(format)) {
      throw new ImageError(
        'format-unavailable',
        `image ${this.externalId} of cloud ${this.#cloud.name} is ${this.#image.diskFormat} and cannot be saved as ${format}; convert it`,
      );
    }
    await obeying(options, (signal) => this.#download(path, options, signal));
  }

  /** @throws OpenStackError */
  async discard(options: OperationOptions = {}): Promise<void> {
    await obeying(options, (signal) => this.#cloud.images.delete(this.externalId, signal));
  }

  async #download(path: string, { onProgress }: OperationOptions, signal: AbortSignal): Promise<void> {
    const { logger, retry: policy } = this.#cloud;
    const progress = new ByteProgress(this.#image.size ?? 0, onProgress);
    const name = `download of image ${this.externalId}`;
    try {
      await retry(() => this.#fetch(path, progress, signal), { ...policy, name, logger, signal });
    } catch (error) {
      await rm(path, { force: true });
      throw error;
    }
    progress.end();
  }

  async #fetch(path: string, progress: ByteProgress, signal: AbortSignal): Promise<void> {
    const digest = storedDigest(this.#image);
    const hash = createHash(digest?.algorithm ?? 'md5');
    const body = await this.#cloud.imageData.read(`/images/${this.externalId}/file`, { signal });
    const size = await writePieces(body, path, hash, progress).catch((error: unknown) => {
      throw asImageError(error, `saving image ${this.externalId} to ${path}`);
    });
    const value = hash.digest('hex');
    if (size === (this.#image.size ?? size) && value === (digest?.value ?? value)) return;
    throw new OpenStackError(
      'checksum-mismatch',
      `cloud ${this.#cloud.name}: ${size} bytes of image ${this.externalId} came, of ${this.#image.size}, with the ${digest?.algorithm} ${value} in place of ${digest?.value}: they changed on their way or in the cloud`,
    );
  }
}

/** @returns how many bytes there were */
async function writePieces(
  body: AsyncIterable<Buffer>,
  path: string,
  hash: Hash,
  progress: ByteProgress,
): Promise<number> {
  const file = await open(path, 'w');
  try {
    let position = 0;
    for await (const piece of body) {
      hash.update(piece);
      await writeSparse(file, piece, position);
      position += piece.length;
      progress.report(position);
    }
    await file.truncate(position);
    return position;
  } finally {
    await file.close();
  }
}
