import { createHash } from 'node:crypto';
import { type FileHandle, open, rm } from 'node:fs/promises';
import {
  ImageError,
  type ImageFormat,
  type OperationOptions,
  type StoredCapture,
} from '@nodepool-builder/image-builder';
import {
  asImageError,
  isImageFormat,
  withAbort,
  writeSparse,
} from '@nodepool-builder/image-builder/module-kit';
import type { GlanceImage } from '../glance-image.ts';
import { OpenStackError } from '../openstack-error.ts';
import { ByteProgress } from '../upload/byte-progress.ts';
import { BUILD_ID } from '../upload/image-properties.ts';
import { retry } from '../upload/retry.ts';
import { storedDigest } from '../upload/verify-image.ts';
import type { InstanceCloud } from './instance-cloud.ts';

/** An image that Nova made of a server; it lies in Glance. */
export class CapturedSnapshot implements StoredCapture {
  readonly externalId: string;
  readonly imageId: string;
  readonly capturedAt: Date;
  readonly formats: readonly ImageFormat[];
  readonly #cloud: InstanceCloud;
  readonly #image: GlanceImage;

  constructor(cloud: InstanceCloud, image: GlanceImage) {
    const { id, diskFormat, createdAt } = image;
    this.externalId = id;
    this.imageId = String(image.properties[BUILD_ID]);
    this.capturedAt = createdAt;
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
    await withAbort(options, (signal) => this.#download(path, options, signal));
  }

  /** @throws OpenStackError */
  async discard(options: OperationOptions = {}): Promise<void> {
    await withAbort(options, (signal) => this.#cloud.images.delete(this.externalId, signal));
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
    try {
      const file = await open(path, 'w');
      try {
        await this.#write(file, progress, signal);
      } finally {
        await file.close();
      }
    } catch (error) {
      throw asImageError(error, `saving image ${this.externalId} to ${path}`);
    }
  }

  async #write(file: FileHandle, progress: ByteProgress, signal: AbortSignal): Promise<void> {
    const digest = storedDigest(this.#image);
    const hash = createHash(digest?.algorithm ?? 'md5');
    let position = 0;
    for await (const piece of await this.#cloud.imageData.read(`/images/${this.externalId}/file`, signal)) {
      hash.update(piece);
      await writeSparse(file, piece, position);
      position += piece.length;
      progress.report(position);
    }
    await file.truncate(position);
    const { size = position } = this.#image;
    if (position !== size) throw this.#mismatch(`${position} of its ${size} bytes came`);
    const value = hash.digest('hex');
    if (digest !== undefined && value !== digest.value) {
      throw this.#mismatch(`${digest.algorithm} ${value} came in place of ${digest.value}`);
    }
  }

  #mismatch(what: string): OpenStackError {
    return new OpenStackError(
      'checksum-mismatch',
      `cloud ${this.#cloud.name}: image ${this.externalId}: ${what}: it changed on its way or in the cloud; build it again, and if that fails too, look at the cloud's image store`,
    );
  }
}
