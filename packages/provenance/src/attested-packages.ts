import { join } from 'node:path';
import { checkImageId } from '@nodepool-builder/image-builder/internal';
import { readBillOfMaterials } from './bom/read-packages.ts';
import { BILL_OF_MATERIALS, type BuildFacts } from './build-statement.ts';
import { ProvenanceError } from './errors.ts';
import type { Package } from './types.ts';

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
