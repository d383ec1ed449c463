import { ImageError } from '@nodepool-builder/image-builder';
import { visible } from '@nodepool-builder/image-builder/internal';

/** A build or an upload that somebody cancelled. */
export class CancelledError extends ImageError {
  /** User who cancelled it: `root@host`. */
  readonly by: string;

  constructor(by: string) {
    super('build-aborted', `cancelled by ${visible(by.slice(0, 200))}`);
    this.by = by;
  }
}
