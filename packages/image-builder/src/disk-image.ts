import type { ImageFormat } from './formats.ts';
import type { Accelerator } from './qemu/machine-arguments.ts';

/** An image that can be built: one entry of `diskimages` in `nodepool.yaml`. */
export interface DiskImage {
  readonly name: string;
  /** Formats for providers; empty means qcow2, or the first of the builder's native formats. */
  readonly formats: readonly ImageFormat[];
  /** Timeout of a build in seconds. Default: none. */
  readonly buildTimeout?: number;
  /** `DIB_RELEASE`. */
  readonly release?: string | number;
  /** Variables for the command, which override all others. Each value must be a string without a NUL. */
  readonly envVars?: Readonly<Record<string, unknown>>;
  /** Texts that logs and errors show as `***`, if they have four characters or more. */
  readonly secrets?: readonly string[];
  /**
   * Variables, in addition to diskimage-builder's, whose values logs and attestations may show. `*` matches any suffix.
   */
  readonly publicVariables?: readonly string[];
  readonly validation?: ImageValidation;
  /** `ELEMENTS_PATH`. */
  readonly elementsDir?: string;
  /** `NODEPOOL_SCRIPTDIR`. */
  readonly scriptDir?: string;
  /** Other keys of the entry, for your own builders. */
  readonly options?: Readonly<Record<string, unknown>>;
}

/** Tests that an image must pass before it is published. */
export interface ImageValidation {
  /**
   * A command and its first arguments. Its last argument is the path of the image: the raw file if it exists, or else
   * the qcow2. Its environment contains `NODEPOOL_IMAGE_ID`, `NODEPOOL_DISKIMAGE` and the path of each format, as in
   * `NODEPOOL_IMAGE_QCOW2`. The image passes if the command exits with 0.
   */
  readonly hook?: readonly string[];
  readonly boot?: BootValidation;
}

/** Settings of a boot test. */
export interface BootValidation {
  /**
   * Matches the line on the serial console that indicates success. An incomplete line, such as a prompt, also counts.
   */
  readonly expect: RegExp;
  /** Timeout of the line, in seconds. Default 600. */
  readonly timeout?: number;
  /** Memory of the machine, in MiB. Default 1024. */
  readonly memory?: number;
  /** QEMU accelerator. Default: `kvm`, or `tcg` if QEMU fails with `kvm`. */
  readonly accelerator?: Accelerator;
}
