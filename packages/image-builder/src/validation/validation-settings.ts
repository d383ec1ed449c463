import type { Accelerator } from '../qemu/machine-arguments.ts';

/** Tests that an image must pass before it is published. */
export interface ImageValidation {
  /**
   * A command and its first arguments. Its last argument is the path of the image: the raw one if it exists, or else the
   * qcow2. Its environment has `NODEPOOL_IMAGE_ID`, `NODEPOOL_DISKIMAGE` and the path of each format, as in
   * `NODEPOOL_IMAGE_QCOW2`. The image is good if the command exits with 0.
   */
  readonly hook?: readonly string[];
  readonly boot?: BootValidation;
}

/** Settings of a boot test. */
export interface BootValidation {
  /** Matches the line on the serial console that tells success. An incomplete line, such as a prompt, also counts. */
  readonly expect: RegExp;
  /** Time limit for the line, in seconds. Default 600. */
  readonly timeout?: number;
  /** Memory of the machine, in MiB. Default 1024. */
  readonly memory?: number;
  /** Default: `kvm`, or `tcg` if QEMU fails with `kvm`. */
  readonly accelerator?: Accelerator;
}
