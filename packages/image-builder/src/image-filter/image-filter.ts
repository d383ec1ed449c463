/**
 * Which images of a provider are meant, in words that hold for every provider. What is absent does not matter; of
 * several values of one key any will do, and all keys have to be met. That an image can be used (whole, not withdrawn,
 * not hidden) is always asked for.
 */
export interface ImageFilter {
  /** Globs (`*`, `?`) of the name that the provider has for it. */
  readonly name?: readonly string[];
  /** The image's name under `providers[].images`, which an upload of this software stores with it. */
  readonly imageName?: readonly string[];
  readonly tag?: readonly string[];
  /** As the provider writes it: `x86_64`. */
  readonly architecture?: readonly string[];
  /** As the provider writes it: `private`, `shared`, `public`. */
  readonly visibility?: readonly string[];
  /**
   * {@link SELF}, or ids of others whose images are trusted. Default: {@link SELF}, for anybody may publish a newer
   * image with the name that one looks for.
   */
  readonly owner?: readonly string[];
  /** Exact values, by the property's name. */
  readonly properties?: ReadonlyMap<string, readonly string[]>;
  /** Built then or later; where that is unknown, created in the provider. */
  readonly createdAfter?: Date;
}

/** The owner that the credentials in use stand for. */
export const SELF = 'self';

/** One line of a filter as people write it: in YAML, and, with one value, as `KEY=VALUE`. */
export interface FilterEntry {
  readonly name: string;
  readonly values: readonly string[];
}
