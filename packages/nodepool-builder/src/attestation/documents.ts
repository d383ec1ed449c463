import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { AttestationDocument, ImageFormat } from '@nodepool-builder/image-builder';

/** Name of the attestation of a build. */
const BUILD = 'build.sigstore.json';

/**
 * Reads the attestations of an image that hold for one of its formats: that of the build, and that of its conversion.
 *
 * @param directory `images-dir`
 * @param format default: only that of the build
 */
export async function attestationsOf(
  directory: string,
  imageId: string,
  format?: ImageFormat,
): Promise<readonly AttestationDocument[]> {
  if (!existsSync(join(directory, `${imageId}.d`, 'attestations'))) return [];
  const { readAttestations } = await import('@nodepool-builder/provenance');
  const names = [BUILD, ...(format === undefined ? [] : [`convert-${format}.sigstore.json`])];
  const found = (await readAttestations(directory, imageId)).map(({ place, text }) => ({
    name: basename(place),
    text,
  }));
  return names.flatMap((name) => found.find((document) => document.name === name) ?? []);
}
