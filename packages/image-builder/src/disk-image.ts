import type { ImageFormat } from './formats.ts';
import type { ImageValidation } from './validation/validation-settings.ts';

/** An image that can be built: one entry of `diskimages` in `nodepool.yaml`. */
export interface DiskImage {
  readonly name: string;
  /** What providers want of it; empty means qcow2, or the first of the builder's native formats. */
  readonly formats: readonly ImageFormat[];
  /** Seconds that a build may take; without it there is no limit. */
  readonly buildTimeout?: number;
  /** `DIB_RELEASE`. */
  readonly release?: string | number;
  /** Added to the command's environment, overriding all else. Every value has to be a string without a NUL. */
  readonly envVars?: Readonly<Record<string, unknown>>;
  /** Texts in whose place logs and errors show `***`, if they have four characters or more. */
  readonly secrets?: readonly string[];
  /** What an image has to stand before it is published. */
  readonly validation?: ImageValidation;
  /** `ELEMENTS_PATH`. */
  readonly elementsDir?: string;
  /** `NODEPOOL_SCRIPTDIR`. */
  readonly scriptDir?: string;
  /** What the entry holds besides, for builders of your own. */
  readonly options?: Readonly<Record<string, unknown>>;
}
