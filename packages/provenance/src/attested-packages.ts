import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { checkImageId } from '@nodepool-builder/image-builder/module-kit';
import { LARGEST_BILL_OF_MATERIALS, parseBillOfMaterials } from './bom/bill-of-materials.ts';
import { BILL_OF_MATERIALS, buildFactsOf } from './build-statement.ts';
import { ProvenanceError } from './errors.ts';
import { readLimited } from './read-limited.ts';
import type { Package, Statement } from './types.ts';

/** Path of the bill of materials in `<directory>/<image-id>.d`. */
export function billOfMaterialsPath(directory: string, imageId: string): string {
  checkImageId(imageId);
  return join(directory, `${imageId}.d`, BILL_OF_MATERIALS);
}

/**
 * Packages of an image, from the bill of materials whose digest the verified statement of its build contains.
 *
 * @throws ProvenanceError `bill-of-materials-invalid` if the build has none or it was changed, `bill-of-materials-too-large`
 */
export async function readAttestedPackages(
  directory: string,
  imageId: string,
  build: Statement,
): Promise<readonly Package[]> {
  const path = billOfMaterialsPath(directory, imageId);
  const facts = buildFactsOf(build);
  const expected = facts?.billOfMaterials;
  if (expected === undefined) {
    const reason = facts?.withoutBillOfMaterials ?? 'set bill-of-materials and build it again';
    throw invalid(`the build of image ${imageId} attests no bill of materials: ${reason}`);
  }
  const bytes = await readLimited(path, {
    thing: 'the bill of materials',
    limit: LARGEST_BILL_OF_MATERIALS,
    unreadable: 'bill-of-materials-invalid',
    tooLarge: 'bill-of-materials-too-large',
    followLinks: false,
  });
  const found = createHash('sha256').update(bytes).digest('hex');
  if (found !== expected) {
    const message = `the bill of materials "${path}" was changed: its sha256 is ${found}, and the build attests ${expected}`;
    throw invalid(`${message}; build the image again`);
  }
  try {
    return await parseBillOfMaterials(bytes.toString());
  } catch (error) {
    throw invalid(`the bill of materials "${path}" cannot be used: ${(error as Error).message}`, error);
  }
}

function invalid(message: string, cause?: unknown): ProvenanceError {
  return new ProvenanceError('bill-of-materials-invalid', message, { cause });
}
