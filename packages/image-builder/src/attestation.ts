import type { DiskImage } from './disk-image.ts';
import type { Manifest, ManifestFile } from './manifest.ts';
import type { OperationOptions } from './types.ts';

/** Anything that a build used: an element's repository, a base image, an artifact, a script. */
export interface Material {
  /** Name for people: `element debian-minimal`. */
  readonly name: string;
  /** `git+https://HOST/PATH@REVISION`, `https://…`, or absent if it has no address. Never with credentials. */
  readonly uri?: string;
  /** Digests by the names of in-toto: `sha256`, `gitCommit`. Empty if none is known. */
  readonly digest: Readonly<Record<string, string>>;
  /** Further facts: Zuul's `build-uuid`, `job`, `change`, or `isModified` of a repository. */
  readonly annotations?: Readonly<Record<string, string | number | boolean>>;
}

/** A build that has succeeded, before its files are published. */
export interface FinishedBuild {
  readonly manifest: Manifest;
  readonly diskimage: DiskImage;
  /** In the order in which the builder reported them. */
  readonly materials: readonly Material[];
  /** Variables that the disk image sets for its commands; the values of secrets are `***`. */
  readonly environment: Readonly<Record<string, string>>;
  /** Staging directory with the files `<image-id>.<extension>` of the manifest, and perhaps `<image-id>.d`. */
  readonly directory: string;
}

/** A file that was converted from another file of its image. */
export interface Conversion {
  readonly imageId: string;
  readonly imageName: string | undefined;
  readonly source: ManifestFile;
  readonly file: ManifestFile;
  /** Directory of `<image-id>.d`. */
  readonly directory: string;
}

/** Proves where images come from, by documents in `<image-id>.d`, which are published and deleted with the image. */
export interface ImageAttester {
  /** Files that no command of a build may read, such as a signing key. */
  readonly secretFiles: readonly string[];
  /** Checks that it can sign. Called before a build and before an upload. */
  check(): Promise<void>;
  /** Adds documents of a build. If it fails, the build fails, and nothing is published. */
  attestBuild(build: FinishedBuild, options?: OperationOptions): Promise<void>;
  /** Adds a document of a converted file. */
  attestConversion(conversion: Conversion, options?: OperationOptions): Promise<void>;
}
