import { BaseImageBuilder } from './base.ts';
import type { BuildContext } from './context.ts';

/** Builds with diskimage-builder's `disk-image-create`. */
export class DibBuilder extends BaseImageBuilder {
  protected override createImage(_context: BuildContext): Promise<void> {
    return Promise.reject(new Error('not built yet'));
  }
}
