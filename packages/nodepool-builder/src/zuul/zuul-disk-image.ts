import type { DiskImage, ZuulImage } from '@nodepool-builder/image-builder';

/** A disk image that a Zuul job makes. */
export interface ZuulDiskImage extends DiskImage {
  readonly zuul: ZuulImage;
}

/** Whether Zuul makes it. */
export function isZuulDiskImage<T extends DiskImage>(diskimage: T): diskimage is T & ZuulDiskImage {
  return diskimage.zuul !== undefined;
}
