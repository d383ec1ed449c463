import { existsSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { AttestationDocument, ImageFormat } from '@nodepool-builder/image-builder';
import { MAX_ATTESTATION_SIZE, readAttestation } from '@nodepool-builder/image-builder/internal';
import { readAttestations } from '@nodepool-builder/provenance';

/** File name of the attestation of a build. */
const BUILD = 'build.sigstore.json';

/** File name of the bill of materials in `<image-id>.d`, and next to an image in a provider. */
export const BILL_OF_MATERIALS = 'bom.cdx.json';

/** Returns whether a document that is kept with an image is a statement rather than a bill of materials. */
export function isAttestation({ name }: AttestationDocument): boolean {
  return name !== BILL_OF_MATERIALS;
}

/** Reads an image's bill of materials. Returns undefined if there is none, or it is too large to keep with images. */
export async function billOfMaterialsOf(
  directory: string,
  imageId: string,
): Promise<AttestationDocument | undefined> {
  const path = join(directory, `${imageId}.d`, BILL_OF_MATERIALS);
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
  if (!existsSync(join(directory, `${imageId}.d`, 'attestations'))) return [];
  const names = [BUILD, ...(format === undefined ? [] : [`convert-${format}.sigstore.json`])];
  const found = (await readAttestations(directory, imageId)).map(({ place, text }) => ({
    name: basename(place),
    text,
  }));
  return names.flatMap((name) => found.find((document) => document.name === name) ?? []);
}
