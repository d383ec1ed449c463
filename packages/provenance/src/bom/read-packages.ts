import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { OperationOptions } from '@nodepool-builder/image-builder';
import { checkImageId, packageListPath } from '@nodepool-builder/image-builder/internal';
import { signalOf } from '@nodepool-builder/image-builder/plugin';
import { BILL_OF_MATERIALS, type BuildFacts } from '../build-statement.ts';
import { ProvenanceError } from '../errors.ts';
import { readLimited } from '../read-limited.ts';
import type { Package } from '../types.ts';
import { inThread } from './in-thread.ts';
import { type ListedPackages, MAX_PACKAGE_LIST } from './package-list.ts';

/** Packages of an image and the name of their list, or the reason why they are unknown. */
export type FoundPackages = ({ readonly source: string } & ListedPackages) | { readonly reason: string };

/**
 * Reads the package list that a build wrote to its directory. A list that cannot be read is not an error.
 *
 * @throws the signal's reason
 */
export async function readPackages(
  directory: string,
  imageId: string,
  options: OperationOptions = {},
): Promise<FoundPackages> {
  // mkosi chooses the second name.
  const paths = [packageListPath(directory, imageId), join(directory, `${imageId}.manifest`)];
  const path = paths.find((one) => existsSync(one));
  if (path === undefined) return { reason: 'its build left no package list' };
  const signal = signalOf(options);
  const source = basename(path);
  try {
    const bytes = await read(path, 'the package list');
    const found = await inThread('parse', { bytes }, signal);
    return found.packages.length > 0 ? { source, ...found } : { reason: `${source} lists no packages` };
  } catch (error) {
    signal.throwIfAborted();
    const { message } = error as Error;
    const isComplete = error instanceof ProvenanceError;
    return { reason: isComplete ? message.replaceAll(path, source) : `${source} cannot be used: ${message}` };
  }
}

/**
 * Reads the packages in a bill of materials.
 *
 * @param sha256 expected digest of the file. Default: any.
 * @throws ProvenanceError `bill-of-materials-invalid`, `bill-of-materials-too-large`
 */
export async function readBillOfMaterials(path: string, sha256?: string): Promise<readonly Package[]> {
  const bytes = await read(path, 'the bill of materials');
  try {
    return (await inThread('parse', { bytes, sha256 }, signalOf({}))).packages;
  } catch (error) {
    const reason = (error as Error).message;
    throw new ProvenanceError(
      'bill-of-materials-invalid',
      `the bill of materials "${path}" cannot be used: ${reason}; build the image again`,
      { cause: error },
    );
  }
}

/** Path of the bill of materials in `<directory>/<image-id>.d`. */
export function billOfMaterialsPath(directory: string, imageId: string): string {
  checkImageId(imageId);
  return join(directory, `${imageId}.d`, BILL_OF_MATERIALS);
}

/**
 * Reads the packages of an image from the bill of materials whose digest the verified statement of its build contains.
 *
 * @param build facts of that statement; undefined if it has no SLSA provenance
 * @throws ProvenanceError `bill-of-materials-invalid` if the build has none or it was changed,
 * `bill-of-materials-too-large`
 */
export async function readAttestedPackages(
  directory: string,
  imageId: string,
  build: Pick<BuildFacts, 'billOfMaterials' | 'withoutBillOfMaterials'> | undefined,
): Promise<readonly Package[]> {
  const { billOfMaterials, withoutBillOfMaterials: reason = 'set bill-of-materials and build it again' } =
    build ?? {};
  if (billOfMaterials === undefined) {
    const message = `the build of image ${imageId} attests no bill of materials: ${reason}`;
    throw new ProvenanceError('bill-of-materials-invalid', message);
  }
  return await readBillOfMaterials(billOfMaterialsPath(directory, imageId), billOfMaterials);
}

async function read(path: string, thing: string): Promise<Buffer> {
  return await readLimited(path, {
    thing,
    limit: MAX_PACKAGE_LIST,
    followLinks: false,
    unreadable: 'bill-of-materials-invalid',
    tooLarge: 'bill-of-materials-too-large',
  });
}
