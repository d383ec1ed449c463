import type { DiskImage } from '@nodepool-builder/image-builder';
import type { ZuulImage } from '@nodepool-builder/zuul-images';

/** A disk image that a Zuul job makes. */
export interface ZuulDiskImage extends DiskImage {
  readonly zuul: ZuulImage;
}

/** Whether Zuul makes it. */
export function isZuulDiskImage<T extends DiskImage>(diskimage: T): diskimage is T & ZuulDiskImage {
  return 'zuul' in diskimage;
}
