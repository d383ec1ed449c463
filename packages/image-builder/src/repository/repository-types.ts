import type { ImageAttester } from '../attestation.ts';
import type { DiskSpaceGuard } from '../disk-space.ts';
import type { ImageFormat } from '../formats.ts';
import type { Image, OperationOptions } from '../types.ts';
import type { BuildCaches } from './build-cache.ts';
import type { Staging } from './staging.ts';
import type { StateDirectory } from './state-directory.ts';

/** Events of an `ImageRepository`. */
export interface ImageRepositoryEvents {
  /** A complete image appeared. */
  added: [image: Image];
  /** An image disappeared. */
  removed: [image: Image];
  /** An id left `ImageRepository.pendingDeletes`. */
  deleteForgotten: [imageId: string];
  /** A file was converted to a format, in this time. */
  converted: [format: ImageFormat, milliseconds: number];
}

/** Called at the end of a build, when its image is published or has failed. */
export type Settle = (isPublished: boolean) => Promise<void>;

/** Resources for making one image. */
export interface BuildSite extends Required<OperationOptions> {
  readonly staging: Staging;
  readonly state: StateDirectory;
  /** Space of the file system of the staging directory. */
  readonly space: DiskSpaceGuard;
  /** Bytes that the last build of the image name used on disk, if known. */
  readonly lastSpace: number | undefined;
  readonly caches: BuildCaches;
  /** Registers a function that is called when the image is published or has failed. */
  readonly onSettled: (settle: Settle) => void;
}

/** Settings of `ImageRepository.file`. */
export interface FileOptions extends OperationOptions {
  /** Maximum virtual size of a disk to convert, in bytes; default 256 GiB. */
  readonly maxDiskSize?: number;
  /** True to compress conversions to formats that support it. Default false. */
  readonly compress?: boolean | undefined;
  /** Proves from which file a converted file was made. Default: none. */
  readonly attester?: ImageAttester | undefined;
}
