import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import {
  attestationDirectory,
  checkImageId,
  errnoOf,
  MAX_ATTESTATION_SIZE,
  unlessMissing,
} from '@nodepool-builder/image-builder/internal';
import { ProvenanceError } from './errors.ts';
import { readLimited } from './read-limited.ts';
import type { FoundAttestation } from './types.ts';

const SUFFIX = '.sigstore.json';

/** Maximum number of attestations of an image that are read. */
const MAX_ATTESTATIONS = 512;

/** Maximum total size of the attestations of an image that are read, in bytes. */
const MAX_TOTAL_SIZE = 32 * MAX_ATTESTATION_SIZE;

/**
 * Returns the file name of an upload's attestation. An id that is too long or not a file name is replaced by its
 * digest.
 */
export function uploadDocument(uploadId: string): string {
  const isName = /^\w[\w-]{0,63}$/.test(uploadId);
  return `upload-${isName ? uploadId : createHash('sha256').update(uploadId).digest('hex')}${SUFFIX}`;
}

/**
 * Reads the attestations in `<directory>/<image-id>.d`, the build's first. Nothing is verified.
 *
 * @throws ProvenanceError `attestation-unreadable`, `bundle-too-large`
 */
export async function readAttestations(
  directory: string,
  imageId: string,
): Promise<readonly FoundAttestation[]> {
  checkImageId(imageId);
  const path = attestationDirectory(directory, imageId);
  const names = await namesOf(path);
  const found: FoundAttestation[] = [];
  let sum = 0;
  for (const name of names) {
    const attestation = await readAttestation(join(path, name));
    if (attestation === undefined) continue; // removed in the meantime
    sum += attestation.text.length;
    if (sum > MAX_TOTAL_SIZE) throw tooLarge(path, `have more than ${MAX_TOTAL_SIZE} bytes`);
    found.push(attestation);
  }
  return found;
}

/** Reads one attestation; undefined if it does not exist. @throws ProvenanceError */
export async function readAttestation(path: string): Promise<FoundAttestation | undefined> {
  const bytes = readLimited(path, {
    thing: 'the attestation',
    limit: MAX_ATTESTATION_SIZE,
    unreadable: 'attestation-unreadable',
    tooLarge: 'bundle-too-large',
    followLinks: false,
  });
  try {
    return { place: path, text: (await bytes).toString('utf8') };
  } catch (error) {
    if (error instanceof ProvenanceError && errnoOf(error.cause) === 'ENOENT') return undefined;
    throw error;
  }
}

async function namesOf(path: string): Promise<readonly string[]> {
  const entries = await unlessMissing(readdir(path)).catch((error: unknown) => {
    const code = errnoOf(error);
    if (code === undefined) throw error;
    const remedy = 'grant this user read access to it';
    const message = `the attestations in "${path}" cannot be read (${code}); ${remedy}`;
    throw new ProvenanceError('attestation-unreadable', message, { cause: error });
  });
  const names = (entries ?? []).filter((name) => name.endsWith(SUFFIX)).toSorted();
  if (names.length > MAX_ATTESTATIONS) throw tooLarge(path, `are more than ${MAX_ATTESTATIONS}`);
  return names; // "build" sorts before "convert" and "upload"
}

function tooLarge(path: string, reason: string): ProvenanceError {
  const message = `the attestations in "${path}" ${reason}; remove those that no builder wrote`;
  return new ProvenanceError('bundle-too-large', message);
}
