import { rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { checkAttestationName, readAttestation } from '../attestation.ts';
import type { UploadPart } from '../cloud/cloud-images.ts';
import { ImageError } from '../errors.ts';
import type { AttestationDocument } from '../types.ts';
import { type DirectoryManifest, manifestPath, readEntries, readManifest } from './manifest.ts';
import { partialPath, partOf, stateOf, writePartial } from './partial-file.ts';

/** Maximum length of a file name in bytes. */
const MAX_NAME_LENGTH = 255;

/** Path of a document next to an image: `debian-0001.qcow2.build.sigstore.json`. */
function sidecarPath(image: string, name: string): string {
  return `${image}.${name}`;
}

/**
 * Checks that documents can be stored next to an image.
 *
 * @throws ImageError `provider-refused` if a name is too long, or belongs to a file of another owner
 */
export async function checkSidecars(image: string, documents: readonly AttestationDocument[]): Promise<void> {
  for (const { name } of documents) {
    checkAttestationName(name);
    const path = sidecarPath(image, name);
    if (Buffer.byteLength(basename(path)) > MAX_NAME_LENGTH) {
      const message = `the name of ${path} is too long for a file; rename the image under providers[].images`;
      throw new ImageError('provider-refused', message);
    }
    const isForeign =
      (await stateOf(path)) !== undefined && !(await readManifest(image))?.attestations?.includes(name);
    if (isForeign) {
      throw new ImageError(
        'provider-refused',
        `${path} exists, but is not a document of ours; move it elsewhere`,
      );
    }
  }
}

/** Names of an image's documents after others have been added. */
export function withNames(
  known: Pick<DirectoryManifest, 'attestations'> | undefined,
  documents: readonly AttestationDocument[],
): Pick<DirectoryManifest, 'attestations'> {
  const names = [...new Set([...(known?.attestations ?? []), ...documents.map(({ name }) => name)])];
  return names.length === 0 ? {} : { attestations: names };
}

/** Stores or replaces documents that the image's manifest names, each of them atomically. */
export async function placeSidecars(
  image: string,
  uploadId: string,
  documents: readonly AttestationDocument[],
): Promise<void> {
  for (const { name, text } of documents) {
    const hidden = partialPath(dirname(image), uploadId);
    try {
      await writePartial(hidden, text);
      await rename(hidden, sidecarPath(image, name));
    } catch (error) {
      await rm(hidden, { force: true }).catch(() => {}); // must not replace the first error
      throw error;
    }
  }
}

/** Reads an image's documents. A missing one is skipped. */
export async function readSidecars(
  image: string,
  { attestations = [] }: DirectoryManifest,
): Promise<AttestationDocument[]> {
  const documents: AttestationDocument[] = [];
  for (const name of attestations.filter(isName)) {
    const text = await readAttestation(sidecarPath(image, name));
    if (text !== undefined) documents.push({ name, text });
  }
  return documents;
}

/** Removes an image's documents, and its manifest last, because a later call finds them through it. */
export async function removeManifest(image: string, manifest: DirectoryManifest | undefined): Promise<void> {
  for (const name of manifest?.attestations?.filter(isName) ?? []) {
    await rm(sidecarPath(image, name), { force: true });
  }
  await rm(manifestPath(image), { force: true });
}

/** Lists the manifests without a complete image. */
export async function listLonelyManifests(directory: string): Promise<UploadPart[]> {
  const lonely = (await readEntries(directory)).filter(({ isWhole }) => !isWhole);
  const parts = lonely.map(async ({ externalId, manifest }) => {
    const target = join(directory, externalId);
    return await partOf(manifestPath(target), manifest['upload-id'], async () => {
      if ((await stateOf(target)) === undefined) await removeManifest(target, manifest);
    });
  });
  return (await Promise.all(parts)).flat();
}

/** A manifest may have been changed by hand, and a name must not lead elsewhere. */
function isName(name: string): boolean {
  try {
    checkAttestationName(name);
    return true;
  } catch {
    return false;
  }
}
