import { EventEmitter } from 'node:events';
import type { ImageFormat } from './formats.ts';
import type { Image, ImageFile, Logger, OperationOptions } from './types.ts';

/** What an {@link ImageRepository} tells. */
export interface ImageRepositoryEvents {
  /** An image is there, whole. */
  added: [image: Image];
  /** An image is gone. */
  removed: [image: Image];
  /** The files of an image are others than before: a format was added, say. */
  changed: [image: Image];
  /** An id left {@link ImageRepository.pendingDeletes}. */
  deleteForgotten: [imageId: string];
}

/** Settings of {@link ImageRepository.open}. */
export interface ImageRepositoryOptions {
  readonly logger?: Logger;
  readonly signal?: AbortSignal;
}

/** The images of one directory. One process owns it. */
export class ImageRepository extends EventEmitter<ImageRepositoryEvents> {
  /** Absolute path, without symbolic links. */
  readonly directory: string;

  private constructor(directory: string) {
    super();
    this.directory = directory;
  }

  /**
   * Takes the directory, undoes what a crash left, and begins to watch.
   *
   * @throws ImageError `directory-locked`, `directory-not-usable`
   */
  static open(directory: string, _options: ImageRepositoryOptions = {}): Promise<ImageRepository> {
    return Promise.resolve(new ImageRepository(directory));
  }

  /** Every whole image, by id. */
  get images(): ReadonlyMap<string, Image> {
    return new Map();
  }

  /** Deleted images whose delete job may come again: the job server has not acknowledged its end yet. */
  get pendingDeletes(): ReadonlySet<string> {
    return new Set();
  }

  get(imageId: string): Image | undefined {
    return this.images.get(imageId);
  }

  /**
   * The image in one of `formats`: the first that is on disk, else one made by conversion.
   *
   * @throws ImageError `image-not-found`, `format-unavailable`, `conversion-failed`, `disk-full`
   */
  file(_imageId: string, _formats: readonly ImageFormat[], _options?: OperationOptions): Promise<ImageFile> {
    return Promise.reject(new Error('not built yet'));
  }

  /**
   * Removes every file of an image. Of an id in {@link pendingDeletes} nothing is left to remove: it succeeds.
   *
   * @throws ImageError `image-not-found`
   */
  delete(_imageId: string): Promise<void> {
    return Promise.reject(new Error('not built yet'));
  }

  /** Says that the job server has acknowledged the end of the delete job: it will not come again. */
  forgetDelete(_imageId: string): Promise<void> {
    return Promise.resolve();
  }

  /** Stops what runs, and gives the directory free. */
  close(): Promise<void> {
    return Promise.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
