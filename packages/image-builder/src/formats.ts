import { ImageError } from './errors.ts';

/** One row of {@link IMAGE_FORMATS}. */
export interface ImageFormatRow {
  /** File name extension in `images-dir`. */
  readonly extension: string;
  /** Argument of `disk-image-create -t`. Absent if diskimage-builder cannot make the format. */
  readonly dibType?: string;
  /** Driver of qemu-img. Absent for formats that are not disks, such as tar. */
  readonly qemuDriver?: string;
  /** Value of `qemu-img convert -o` for this format. */
  readonly qemuOptions?: string;
  /** True if qemu-img can compress it. */
  readonly compressible?: boolean;
  /** Unit of the disk's size in bytes. Zeros are appended up to a multiple of it. Default: any size. */
  readonly alignment?: number;
}

/**
 * Image formats of `images-dir`, by the name that `image-type` of `nodepool.yaml` and `disk-image-create -t` share. A
 * new format is one row.
 *
 * Three of them are VHDs. `vhd` is dynamic, as Xen's vhd-util makes it. `vpc` is Virtual PC's, rounded up to whole
 * cylinders. `vhd-fixed` has a fixed size in whole MiB.
 */
export const IMAGE_FORMATS = {
  qcow2: { extension: 'qcow2', dibType: 'qcow2', qemuDriver: 'qcow2', compressible: true },
  raw: { extension: 'raw', dibType: 'raw', qemuDriver: 'raw' },
  vhd: {
    extension: 'vhd',
    dibType: 'vhd',
    qemuDriver: 'vpc',
    qemuOptions: 'subformat=dynamic,force_size=on',
  },
  'vhd-fixed': {
    extension: 'vhd-fixed',
    qemuDriver: 'vpc',
    qemuOptions: 'subformat=fixed,force_size=on',
    alignment: 1_048_576,
  },
  vhdx: { extension: 'vhdx', dibType: 'vhdx', qemuDriver: 'vhdx', qemuOptions: 'subformat=dynamic' },
  vmdk: { extension: 'vmdk', dibType: 'vmdk', qemuDriver: 'vmdk' },
  vdi: { extension: 'vdi', dibType: 'vdi', qemuDriver: 'vdi' },
  vpc: { extension: 'vpc', dibType: 'vpc', qemuDriver: 'vpc' },
  iso: { extension: 'iso' },
  tar: { extension: 'tar', dibType: 'tar' },
  tgz: { extension: 'tgz', dibType: 'tgz' },
  squashfs: { extension: 'squash', dibType: 'squashfs' },
  aci: { extension: 'aci', dibType: 'aci' },
} as const;
IMAGE_FORMATS satisfies Record<string, ImageFormatRow>;

/** Name of an image format: `qcow2`, `raw`, `vhd` and so on. */
export type ImageFormat = keyof typeof IMAGE_FORMATS;

/** Names of all formats, the preferred ones first. */
export const FORMAT_NAMES: readonly ImageFormat[] = Object.keys(IMAGE_FORMATS) as ImageFormat[];

const FORMAT_OF_EXTENSION: ReadonlyMap<string, ImageFormat> = new Map(
  FORMAT_NAMES.map((format) => [IMAGE_FORMATS[format].extension, format]),
);

/** Returns whether `name` is the name of a known format. */
export function isImageFormat(name: unknown): name is ImageFormat {
  return typeof name === 'string' && Object.hasOwn(IMAGE_FORMATS, name);
}

export function formatRow(format: ImageFormat): ImageFormatRow {
  return IMAGE_FORMATS[format];
}

/** Returns the format of a file name extension; undefined if it is not the extension of an image. */
export function formatOfExtension(extension: string): ImageFormat | undefined {
  return FORMAT_OF_EXTENSION.get(extension);
}

/**
 * Refuses unknown format names.
 *
 * @throws ImageError `format-unknown`
 */
export function checkFormats(names: readonly string[]): asserts names is readonly ImageFormat[] {
  const unknown = names.find((name) => !isImageFormat(name));
  if (unknown === undefined) return;
  throw new ImageError(
    'format-unknown',
    `"${unknown}" is not an image format; use one of ${FORMAT_NAMES.join(', ')}`,
  );
}
