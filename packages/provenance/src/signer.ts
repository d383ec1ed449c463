import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { resolve } from 'node:path';
import { runSecretCommand } from '@nodepool-builder/image-builder/internal';
import { ProvenanceError } from './errors.ts';
import { keyIdOf, readKey, readPublicKey, signatureDigest } from './keys.ts';
import type { Signer } from './types.ts';

/** Permissions of other users, which a private key must not have. */
const OTHERS = 0o007;

/** Settings of {@link openSigner}: a private key, or a command with its public key. */
export interface SignerSettings {
  /** File of the private key, in PEM. */
  readonly key?: string | undefined;
  /**
   * Command and arguments. The command reads the data from standard input and writes the signature to standard output.
   */
  readonly 'sign-command'?: readonly string[];
  /** File of the public key, in PEM. Default: the public part of the private key. */
  readonly 'public-key'?: string;
}

/**
 * Opens the key that signs attestations.
 *
 * @throws ProvenanceError `key-unusable`
 */
export async function openSigner({
  key,
  'sign-command': signCommand,
  'public-key': publicKey,
}: SignerSettings): Promise<Signer> {
  if (key !== undefined) return await openKey(key, publicKey);
  if (signCommand === undefined || publicKey === undefined) {
    const remedy = 'set key, or sign-command with public-key';
    throw new ProvenanceError('key-unusable', `attestation has no key to sign with; ${remedy}`);
  }
  const { key: verifier, keyId, file } = await readPublicKey(publicKey);
  return {
    keyId,
    publicKey: verifier,
    async sign(data, signal) {
      const { output: signature, reason } = await runSecretCommand(signCommand, { input: data, signal });
      if (reason !== undefined) throw signingFailed(signCommand, `${reason}; run it by hand to see why`);
      if (verifySignature(verifier, data, signature)) return signature;
      const found = `wrote ${signature.length} bytes that are not a signature by the key "${file}"`;
      const remedy =
        'it must write only the signature, for ECDSA in DER with SHA-256 (P-256) or SHA-384 (P-384)';
      throw signingFailed(signCommand, `${found}; ${remedy}`);
    },
  };
}

/** Returns whether a signature of the data was made with the private part of a key. */
export function verifySignature(publicKey: KeyObject, data: Buffer, signature: Buffer): boolean {
  try {
    return verify(signatureDigest(publicKey), data, publicKey, signature);
  } catch {
    return false; // OpenSSL cannot parse it
  }
}

async function openKey(file: string, publicFile: string | undefined): Promise<Signer> {
  const keyFile = resolve(file);
  const key = await readKey(keyFile, 'the private key', createPrivateKey, OTHERS);
  const publicKey = createPublicKey(key);
  const keyId = keyIdOf(publicKey);
  if (publicFile !== undefined) {
    const { keyId: other, file: path } = await readPublicKey(publicFile);
    if (other !== keyId) {
      const remedy = 'write it again with "openssl pkey -pubout"';
      const message = `the public key "${path}" does not belong to the private key "${keyFile}"; ${remedy}`;
      throw new ProvenanceError('key-unusable', message);
    }
  }
  const digest = signatureDigest(key) ?? null;
  return { keyId, publicKey, keyFile, sign: async (data) => sign(digest, data, key) };
}

function signingFailed([command]: readonly string[], reason: string): ProvenanceError {
  return new ProvenanceError('signing-failed', `the sign-command "${command}" ${reason}`);
}
