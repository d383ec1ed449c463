import { lstat, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DiskImage } from './disk-image.ts';
import { writeDurably } from './durable.ts';
import { ImageError } from './errors.ts';
import type { ImageFormat } from './formats.ts';
import type { Manifest, ManifestFile } from './manifest.ts';
import { IMAGE_DIRECTORY, IMAGE_FILE, makeDirectory, setMode } from './modes.ts';
import { unlessMissing } from './system-error.ts';
import type { AttestationDocument, OperationOptions } from './types.ts';

/** A thing that a build used: an element's repository, a base image, an artifact, a script. */
export interface Material {
  /** Name for people: `element debian-minimal`. */
  readonly name: string;
  /** `git+https://HOST/PATH@REVISION` or `https://…`, without credentials; absent if it has no address. */
  readonly uri?: string;
  /** Digests by their names in in-toto: `sha256`, `gitCommit`. Empty if none is known. */
  readonly digest: Readonly<Record<string, string>>;
  /** Further facts, such as the id of an imported build, or `isModified` of a repository. */
  readonly annotations?: Readonly<Record<string, string | number | boolean>>;
}

/** A build that has succeeded, before its files are published. */
export interface FinishedBuild {
  readonly manifest: Manifest;
  readonly diskimage: DiskImage;
  /** The materials, in the order in which the builder reported them. */
  readonly materials: readonly Material[];
  /** Variables that the disk image sets for its commands. The values of secrets are `***`. */
  readonly environment: Readonly<Record<string, string>>;
  /** Staging directory with the files `<image-id>.<extension>` of the manifest, and optionally `<image-id>.d`. */
  readonly directory: string;
}

/** A file that was converted from another file of its image. */
export interface Conversion {
  readonly imageId: string;
  readonly imageName: string | undefined;
  readonly source: Pick<ManifestFile, 'format' | 'sha256'>;
  readonly file: ManifestFile;
  /** Image directory that contains `<image-id>.d`. */
  readonly directory: string;
}

/** Proves the origin of images with documents in `<image-id>.d`, which are published and deleted with the image. */
export interface ImageAttester {
  /** Files that no command of a build may read, such as a signing key. */
  readonly secretFiles: readonly string[];
  /** True if {@link attestBuild} reads the package list that a build writes to its directory. */
  readonly wantsPackages: boolean;
  /** Checks that it can sign, before a build and before an upload. */
  check(): Promise<void>;
  /** Adds documents of a build. If it fails, the build fails, and nothing is published. */
  attestBuild(build: FinishedBuild, options?: OperationOptions): Promise<void>;
  /** Adds a document about a file that was converted after the build. */
  attestConversion(conversion: Conversion, options?: OperationOptions): Promise<void>;
}

/** Name of the attestation directory in `<image-id>.d`. */
export const ATTESTATIONS = 'attestations';

/** Matches names of bills of materials in `<image-id>.d`. */
export const BILL_OF_MATERIALS: RegExp = /^bom\.[\w.-]+$/;

/** Path for the package list that a build writes to its directory. It is not published. */
export function packageListPath(directory: string, imageId: string): string {
  return join(directory, `${imageId}.packages`);
}

/** File name of the document about a build. */
export const BUILD_DOCUMENT = 'build.sigstore.json';

/** File name of the document about a converted file. */
export function conversionDocument(format: ImageFormat): string {
  return `convert-${format}.sigstore.json`;
}

/** Maximum size of an attestation in bytes. */
export const MAX_ATTESTATION_SIZE: number = 2 ** 20;

/** Maximum length of a document name, so that it can be appended to the name of an image file. */
const MAX_NAME_LENGTH = 100;

const NAME = /^[A-Za-z0-9][\w@+-]*(?:\.[\w@+-]+)*\.json$/;

/**
 * Checks the name of a document.
 *
 * @throws TypeError
 */
export function checkAttestationName(name: string): void {
  if (NAME.test(name) && name.length <= MAX_NAME_LENGTH) return;
  throw new TypeError(`${JSON.stringify(name.slice(0, 200))} is not a valid attestation name`);
}

/** Path of the attestation directory of an image. */
export function attestationDirectory(directory: string, imageId: string): string {
  return join(directory, `${imageId}.d`, ATTESTATIONS);
}

/**
 * Writes or replaces an attestation of an image atomically. It survives a power failure once this resolves.
 *
 * @param directory image directory, or the staging directory of a build
 */
export async function writeAttestation(
  directory: string,
  imageId: string,
  { name, text }: AttestationDocument,
): Promise<void> {
  checkAttestationName(name);
  const own = attestationDirectory(directory, imageId);
  await makeDirectory(own, IMAGE_DIRECTORY);
  for (const path of [join(directory, `${imageId}.d`), own]) await setMode(path, IMAGE_DIRECTORY); // regardless of the umask
  await writeDurably(join(own, name), text, IMAGE_FILE);
}

/**
 * Reads an attestation from a file; undefined if it does not exist.
 *
 * @throws ImageError `directory-not-usable` for a file that is too large or not a regular one
 */
export async function readAttestation(path: string): Promise<string | undefined> {
  const state = await unlessMissing(lstat(path));
  if (state === undefined) return undefined;
  if (state.isFile() && state.size <= MAX_ATTESTATION_SIZE)
    return await unlessMissing(readFile(path, 'utf8'));
  const reason = state.isFile() ? `has ${state.size} bytes, more than 1 MiB` : 'is not a regular file';
  throw new ImageError('directory-not-usable', `"${path}" is not an attestation: it ${reason}; remove it`);
}
