import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { AttestationDocument, ImageFormat } from '@nodepool-builder/image-builder';
import {
  attestationDirectory,
  BUILD_DOCUMENT,
  conversionDocument,
  MAX_ATTESTATION_SIZE,
  readAttestation,
} from '@nodepool-builder/image-builder/internal';
import { BILL_OF_MATERIALS, billOfMaterialsPath } from '@nodepool-builder/provenance';

/** Returns whether a document that is kept with an image is a statement rather than a bill of materials. */
export function isAttestation({ name }: AttestationDocument): boolean {
  return name !== BILL_OF_MATERIALS;
}

/** Reads an image's bill of materials. Returns undefined if there is none, or it is too large to keep with images. */
export async function billOfMaterialsOf(
  directory: string,
  imageId: string,
): Promise<AttestationDocument | undefined> {
  const path = billOfMaterialsPath(directory, imageId);
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  const text = size > MAX_ATTESTATION_SIZE ? undefined : await readAttestation(path);
  return text === undefined ? undefined : { name: BILL_OF_MATERIALS, text };
}

/**
 * Reads the attestations that apply to one format of an image: the build's, and the conversion's.
 *
 * @param directory `images-dir`
 * @param format default: only the build's attestation
 */
export async function attestationsOf(
  directory: string,
  imageId: string,
  format?: ImageFormat,
): Promise<readonly AttestationDocument[]> {
  const names = [BUILD_DOCUMENT, ...(format === undefined ? [] : [conversionDocument(format)])];
  const found = await Promise.all(
    names.map(async (name) => ({
      name,
      text: await readAttestation(join(attestationDirectory(directory, imageId), name)),
    })),
  );
  return found.flatMap(({ name, text }) => (text === undefined ? [] : [{ name, text }]));
}
