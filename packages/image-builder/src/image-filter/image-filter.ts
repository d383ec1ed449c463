/**
 * Selects images of any provider. An image passes if, for every key that is present, it has one of the values. Images
 * that cannot be booted (incomplete, deactivated, hidden) never pass.
 */
export interface ImageFilter {
  /** Globs (`*`, `?`) for the image's name in the provider. */
  readonly name?: readonly string[];
  /** Names under `providers[].images`, which our uploads store as a property. */
  readonly imageName?: readonly string[];
  readonly tag?: readonly string[];
  /** In the provider's spelling: `x86_64`. */
  readonly architecture?: readonly string[];
  /** In the provider's spelling: `private`, `shared`, `public`. */
  readonly visibility?: readonly string[];
  /**
   * {@link SELF}, or ids of other trusted owners. Default: {@link SELF}, because anybody can publish a newer image
   * with the same name.
   */
  readonly owner?: readonly string[];
  /** Exact values, by the name of the property. */
  readonly properties?: ReadonlyMap<string, readonly string[]>;
  /** Earliest build time; for images without one, the earliest time of creation in the provider. */
  readonly createdAfter?: Date;
}

/** Owner of the credentials in use. */
export const SELF = 'self';

/** Entry of a filter in YAML; with one value also `KEY=VALUE` on the command line. */
export interface FilterEntry {
  readonly name: string;
  readonly values: readonly string[];
}
