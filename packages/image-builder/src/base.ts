import type { BuildContext } from './context.ts';
import type { DiskImage } from './disk-image.ts';
import type { ImageFormat } from './formats.ts';
import type { ImageRepository } from './repository.ts';
import type { Image, Logger, OperationOptions } from './types.ts';

/** One build: what `image-build:<name>` asks for. */
export interface BuildJob extends OperationOptions {
  readonly imageId: string;
  /** Where the image goes. */
  readonly repository: ImageRepository;
  readonly logger?: Logger;
  /** Where `<image-id>.log` goes; default `.nodepool-builder/logs` in the repository's directory. */
  readonly logDirectory?: string;
  /** Called with each line of the build's log. */
  readonly onLine?: (line: string) => void;
  /** The environment that commands inherit; default this process's own. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
}

/** Makes images of one {@link DiskImage}. A builder of your own extends it and writes {@link createImage}. */
export abstract class BaseImageBuilder {
  readonly diskimage: DiskImage;
  /** The formats that {@link createImage} can make; without it, any. Others come by conversion when needed. */
  readonly nativeFormats?: readonly ImageFormat[];

  constructor(diskimage: DiskImage) {
    this.diskimage = diskimage;
  }

  build(_job: BuildJob): Promise<Image> {
    return Promise.reject(new Error('not built yet'));
  }

  /** Leaves the image in each of `context.formats` at `context.output(format)`. */
  protected abstract createImage(context: BuildContext): Promise<void>;
}
