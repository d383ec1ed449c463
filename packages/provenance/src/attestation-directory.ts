import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ImageFormat } from '@nodepool-builder/image-builder';
import {
  checkImageId,
  errnoOf,
  makeDirectory,
  unlessMissing,
  writeDurably,
} from '@nodepool-builder/image-builder/module-kit';
import { LARGEST_BUNDLE } from './bundle.ts';
import { ProvenanceError } from './errors.ts';
import { readLimited } from './read-limited.ts';
import type { BundleText, FoundAttestation } from './types.ts';

const SUFFIX = '.sigstore.json';

/** Most attestations of an image that are read. */
const MOST_ATTESTATIONS = 512;

/** Most bytes of all attestations of an image that are read. */
const LARGEST_SUM = 32 * LARGEST_BUNDLE;

/** Attestations are public, as images are. */
const FILE_MODE = 0o644;
const DIRECTORY_MODE = 0o755;

/** Name of the attestation of a build. */
export const BUILD_FILE = `build${SUFFIX}`;

/** Name of the attestation of a conversion. */
export function conversionFile(format: ImageFormat): string {
  return `convert-${format}${SUFFIX}`;
}

/** Name of the attestation of an upload, whose id may be any text. */
export function uploadFile(uploadId: string): string {
  const isName = /^[\w-][\w.-]{0,127}$/.test(uploadId);
  return `upload-${isName ? uploadId : createHash('sha256').update(uploadId).digest('hex')}${SUFFIX}`;
}

/** Directory of the documents of an image. */
export function documentDirectory(directory: string, imageId: string): string {
  checkImageId(imageId);
  return join(directory, `${imageId}.d`);
}

/** Writes an attestation of an image atomically, and returns its path. */
export async function writeAttestation(
  directory: string,
  imageId: string,
  name: string,
  text: BundleText,
): Promise<string> {
  const attestations = join(documentDirectory(directory, imageId), 'attestations');
  await makeDirectory(attestations, DIRECTORY_MODE);
  const path = join(attestations, name);
  await writeDurably(path, text, FILE_MODE);
  return path;
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
  const path = join(documentDirectory(directory, imageId), 'attestations');
  const names = await namesOf(path);
  const found: FoundAttestation[] = [];
  let sum = 0;
  for (const name of names) {
    const attestation = await readAttestation(join(path, name));
    if (attestation === undefined) continue; // removed meanwhile
    sum += attestation.text.length;
    if (sum > LARGEST_SUM) throw tooLarge(path, `have more than ${LARGEST_SUM} bytes`);
    found.push(attestation);
  }
  return found;
}

/** Reads one attestation; undefined if it does not exist. @throws ProvenanceError */
export async function readAttestation(path: string): Promise<FoundAttestation | undefined> {
  const bytes = readLimited(path, {
    thing: 'the attestation',
    limit: LARGEST_BUNDLE,
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
    const remedy = 'give this user the right to read it';
    const message = `the attestations in "${path}" cannot be read (${code}); ${remedy}`;
    throw new ProvenanceError('attestation-unreadable', message, { cause: error });
  });
  const names = (entries ?? []).filter((name) => name.endsWith(SUFFIX)).toSorted();
  if (names.length > MOST_ATTESTATIONS) throw tooLarge(path, `are more than ${MOST_ATTESTATIONS}`);
  return names; // "build" sorts before "convert" and "upload"
}

function tooLarge(path: string, reason: string): ProvenanceError {
  const message = `the attestations in "${path}" ${reason}; remove those that no builder wrote`;
  return new ProvenanceError('bundle-too-large', message);
}
