import { ImageError } from './errors.ts';

/** One row of {@link IMAGE_FORMATS}. */
export interface ImageFormatRow {
  /** What follows the last dot of the file's name in `images-dir`. */
  readonly extension: string;
  /** The word for `disk-image-create -t`; absent for what diskimage-builder does not make. */
  readonly dibType?: string;
  /** qemu-img's name of the driver that reads and writes it; absent for what is no disk (a tar, say). */
  readonly qemuDriver?: string;
  /** `-o` of `qemu-img convert` when an image is made in this format. */
  readonly qemuOptions?: string;
  /** What the length of the disk must be a multiple of, in bytes; zeros are added. Default: any length will do. */
  readonly alignment?: number;
}

/**
 * Every image format that can lie in `images-dir`, by the name that `image-type` of `nodepool.yaml`,
 * `disk-image-create -t` and Glance's `disk_format` share. A new format is one row.
 *
 * Three of them are VHDs: `vhd` grows, as Xen's vhd-util makes it; `vpc` is Virtual PC's, rounded up to whole
 * cylinders; `vhd-fixed` is what Azure takes: of fixed length, in whole MiB.
 */
export const IMAGE_FORMATS = {
  qcow2: { extension: 'qcow2', dibType: 'qcow2', qemuDriver: 'qcow2' },
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
  iso: { extension: 'iso', dibType: 'iso' },
  tar: { extension: 'tar', dibType: 'tar' },
  tgz: { extension: 'tgz', dibType: 'tgz' },
  squashfs: { extension: 'squash', dibType: 'squashfs' },
  aci: { extension: 'aci', dibType: 'aci' },
} as const;
IMAGE_FORMATS satisfies Record<string, ImageFormatRow>;

/** The name of an image format: `qcow2`, `raw`, `vhd` and so on. */
export type ImageFormat = keyof typeof IMAGE_FORMATS;

/** All names of formats, in the order of preference when several would do. */
export const FORMAT_NAMES: readonly ImageFormat[] = Object.keys(IMAGE_FORMATS) as ImageFormat[];

const FORMAT_OF_EXTENSION: ReadonlyMap<string, ImageFormat> = new Map(
  FORMAT_NAMES.map((format) => [IMAGE_FORMATS[format].extension, format]),
);

/** Whether `name` is the name of a known format. */
export function isImageFormat(name: unknown): name is ImageFormat {
  return typeof name === 'string' && Object.hasOwn(IMAGE_FORMATS, name);
}

/** The row of a format. */
export function formatRow(format: ImageFormat): ImageFormatRow {
  return IMAGE_FORMATS[format];
}

/** The format of a file by what follows the last dot of its name; undefined for anything that is no image. */
export function formatOfExtension(extension: string): ImageFormat | undefined {
  return FORMAT_OF_EXTENSION.get(extension);
}

/**
 * Refuses names that are no formats.
 *
 * @throws ImageError `format-unknown`
 */
export function checkFormats(names: readonly string[]): asserts names is readonly ImageFormat[] {
  const unknown = names.find((name) => !isImageFormat(name));
  if (unknown === undefined) return;
  throw new ImageError(
    'format-unknown',
    `"${unknown}" is no image format; use one of ${FORMAT_NAMES.join(', ')}`,
  );
}
