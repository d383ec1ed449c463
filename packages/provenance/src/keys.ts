import { createHash, createPublicKey, type KeyObject } from 'node:crypto';
import { resolve } from 'node:path';
import { ProvenanceError } from './errors.ts';
import { readLimited } from './read-limited.ts';
import type { TrustedKey } from './types.ts';

/** Maximum size of a key file in bytes. A PEM file has a few hundred. */
const MAX_KEY_FILE_SIZE = 65_536;

const SUPPORTED = 'Ed25519, ECDSA P-256 and ECDSA P-384';

/** Digest that a key signs. Ed25519 signs the data itself. */
type SignatureDigest = 'sha256' | 'sha384' | null;

/** Curves of ECDSA by their names in OpenSSL, with the digest that FIPS 186 and sigstore pair with each. */
const CURVES: Readonly<Record<string, SignatureDigest>> = { prime256v1: 'sha256', secp384r1: 'sha384' };

/** Returns the digest for signatures with a key; undefined if its type is not supported. */
export function signatureDigest(key: KeyObject): SignatureDigest | undefined {
  if (key.asymmetricKeyType === 'ed25519') return null;
  return key.asymmetricKeyType === 'ec' ? CURVES[key.asymmetricKeyDetails?.namedCurve ?? ''] : undefined;
}

/** Returns the SHA-256 of the SubjectPublicKeyInfo in DER, in hexadecimal. */
export function keyIdOf(publicKey: KeyObject): string {
  return createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('hex');
}

/**
 * Reads a PEM key.
 *
 * @param parse parses the text of the file
 * @throws ProvenanceError `key-unusable`, which contains nothing of the file
 */
export async function readKey(
  path: string,
  thing: string,
  parse: (pem: Buffer) => KeyObject,
  forbiddenMode?: number,
): Promise<KeyObject> {
  const pem = await readLimited(path, {
    thing,
    limit: MAX_KEY_FILE_SIZE,
    unreadable: 'key-unusable',
    tooLarge: 'key-unusable',
    ...(forbiddenMode !== undefined && { forbiddenMode }),
  });
  let key: KeyObject;
  try {
    key = parse(pem);
  } catch (error) {
    if (error instanceof ProvenanceError) throw error;
    // OpenSSL's error is not helpful, and is omitted in case it quotes the key.
    const isEncrypted = pem.includes('ENCRYPTED');
    const reason = isEncrypted
      ? 'it is encrypted; store it without a passphrase, or use sign-command'
      : 'it is no such key in PEM; create one with "openssl genpkey -algorithm ed25519"';
    throw new ProvenanceError('key-unusable', `${thing} "${path}" cannot be used: ${reason}`);
  } finally {
    pem.fill(0);
  }
  if (signatureDigest(key) === undefined) {
    const details = [key.asymmetricKeyType, key.asymmetricKeyDetails?.namedCurve].filter(Boolean).join(' ');
    const reason = `its type is ${details}; use one of ${SUPPORTED}`;
    throw new ProvenanceError('key-unusable', `${thing} "${path}" cannot be used: ${reason}`);
  }
  return key;
}

/** Reads a PEM public key. @throws ProvenanceError `key-unusable` */
export async function readPublicKey(file: string): Promise<TrustedKey> {
  const path = resolve(file);
  const thing = 'the public key';
  const key = await readKey(path, thing, (pem) => {
    // createPublicKey() would derive one from a private key, which must not be among trusted keys.
    if (pem.includes('PRIVATE KEY')) {
      const remedy = 'name the file that "openssl pkey -pubout" writes';
      throw new ProvenanceError('key-unusable', `${thing} "${path}" is a private key; ${remedy}`);
    }
    return createPublicKey(pem);
  });
  return { keyId: keyIdOf(key), file: path, key };
}

/** Reads the public keys for verifying signatures. @throws ProvenanceError `key-unusable` */
export async function readTrustedKeys(files: readonly string[]): Promise<readonly TrustedKey[]> {
  return await Promise.all(files.map(readPublicKey));
}
