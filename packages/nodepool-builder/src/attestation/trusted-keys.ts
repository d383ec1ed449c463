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
  const { key: file } = settings ?? {};
  if (files.length > 0 || file === undefined) return await readTrustedKeys(files);
  const { keyId, publicKey: key } = await openSigner({ key: file });
  return [{ keyId, file, key }];
}
