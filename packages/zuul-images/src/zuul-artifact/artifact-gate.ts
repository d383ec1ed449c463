import { readFile, rm } from 'node:fs/promises';
import { basename } from 'node:path';
import { type BuildContext, type GatedFile, ImageError } from '@nodepool-builder/image-builder';
import { checksumsOf, MAX_ATTESTATION_SIZE } from '@nodepool-builder/image-builder/internal';
import type { ZuulBuild } from '../api/zuul-build.ts';
import type { ImageArtifact } from '../builds/image-artifact.ts';
import { nameOf } from '../download/artifact-url.ts';
import { downloadArtifact } from '../download/download-artifact.ts';
import type { ArtifactAccess } from '../download/http-source.ts';
import { unpackedName } from '../download/unpacking.ts';
import type { KeptFile, KeptFiles } from './kept-files.ts';

/** `type` in the metadata of artifacts that are attestations. */
const TYPE = 'attestation';

/** Suffix of the attestation next to an artifact. */
const ENDING = '.sigstore.json';

/** Maximum number of attestations of a build that are fetched. */
const MAX_ATTESTATIONS = 16;

/** A downloaded artifact. */
interface CheckedArtifact {
  readonly artifact: ImageArtifact;
  readonly file: KeptFile;
  readonly build: ZuulBuild;
  readonly kept: KeptFiles;
  readonly access: ArtifactAccess;
}

/** Checks a file with its attestations. @throws ImageError `attestation-refused` */
export type FileCheck = (file: GatedFile) => Promise<void>;

/**
 * Rejects an artifact without the required attestations.
 *
 * @throws ImageError `attestation-refused`, and errors of `downloadArtifact`
 */
export async function checkArtifact(
  checked: CheckedArtifact,
  checkFile: FileCheck,
  { signal, log }: Pick<BuildContext, 'signal' | 'log'>,
): Promise<void> {
  const { artifact, file } = checked;
  const name = `artifact ${nameOf(artifact.url)}`;
  const attestations = [];
  for (const url of attestationUrls(checked)) {
    const text = await fetchText(url, checked, signal);
    if (text !== undefined) attestations.push({ place: nameOf(url), text });
  }
  const sha256 = file.sha256 ?? (await checksumsOf(file.path, { signal })).sha256;
  await checkFile({ name, fileName: basename(unpackedName(artifact.url)), sha256, attestations });
  log(`${name} has the required attestations`);
}

/** Returns the URLs of an artifact's attestations: artifacts of its build, or else the file next to it. */
function attestationUrls({ artifact, build }: CheckedArtifact): readonly string[] {
  const beside = new URL(artifact.url);
  beside.pathname += ENDING;
  const listed = build.artifacts
    .filter(({ url, metadata }) => metadata.type === TYPE || nameOf(url) === nameOf(beside))
    .map(({ url }) => url);
  return listed.length > 0 ? listed.slice(0, MAX_ATTESTATIONS) : [beside.href];
}

/** Fetches an attestation; undefined if its server does not have it. */
async function fetchText(
  url: string,
  { artifact, kept, access }: CheckedArtifact,
  signal: AbortSignal,
): Promise<string | undefined> {
  const directory = kept.partial({ format: artifact.format, url });
  const limits = { maxSize: MAX_ATTESTATION_SIZE, leaveFree: 0 };
  try {
    const { path } = await downloadArtifact({ url, access, directory, ...limits }, { signal });
    return await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof ImageError && error.code === 'artifact-expired') return undefined;
    throw error;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
