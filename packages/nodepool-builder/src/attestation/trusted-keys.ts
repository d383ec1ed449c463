import { createPublicKey } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { RequiredAttestation } from '@nodepool-builder/image-builder';
import { openSigner, readTrustedKeys, type TrustedKey } from '@nodepool-builder/provenance';
import { type AttestationSettings, trustedKeyFiles } from '../configuration/attestation.ts';

/**
 * Reads the keys that a site trusts: those of a gate, else those of `attestation`, else the public part of its signing
 * key. Returns an empty list if there are none.
 *
 * @throws ProvenanceError `key-unusable`
 */
export async function readTrusted(
  settings: AttestationSettings | undefined,
  gate?: RequiredAttestation,
): Promise<readonly TrustedKey[]> {
  const files = trustedKeyFiles(gate, settings);
  if (files.length === 0 && settings?.key !== undefined) return [await ownKey(settings.key)];
  return await readTrustedKeys(files);
}

/** The public part of the signing key. */
async function ownKey(file: string): Promise<TrustedKey> {
  const { keyId } = await openSigner({ key: file }); // throws an error with a remedy
  const key = createPublicKey(await readFile(file));
  return { keyId, file, key };
}
