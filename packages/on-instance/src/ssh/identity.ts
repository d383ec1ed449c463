import { readFile } from 'node:fs/promises';
import { ImageError } from '@nodepool-builder/image-builder';
import ssh2 from 'ssh2';
import type { InstanceClaim } from '../instance-records.ts';

/** SSH key for the machine of a build. */
export interface Identity {
  /** Private key in OpenSSH's format. */
  readonly privateKey: string;
  /** A line of `authorized_keys`. */
  readonly publicKey: string;
  /** Path of {@link privateKey}, written only if it must outlive the build. */
  readonly keyFile: string;
  /** True if the key was generated for the build, and is removed before the machine is captured. */
  readonly isOwn: boolean;
}

/**
 * Returns the key that the base image accepts, the earlier process's key, or a generated one.
 *
 * @param isResumed an earlier process started the build
 * @throws ImageError `invalid-configuration` if the file contains no usable private key
 */
export async function identityOf(
  privateKeyFile: string | undefined,
  { keyFile, imageId }: InstanceClaim,
  isResumed = false,
): Promise<Identity> {
  if (privateKeyFile !== undefined) return { ...(await readIdentity(privateKeyFile)), isOwn: false };
  if (isResumed) return { ...(await readIdentity(keyFile)), isOwn: true };
  return { ...generateKeyPair(`nodepool-builder-${imageId}`), keyFile, isOwn: true };
}

/** Generates an ed25519 key pair. */
export function generateKeyPair(comment: string): Pick<Identity, 'privateKey' | 'publicKey'> {
  for (;;) {
    const { private: privateKey, public: publicKey } = ssh2.utils.generateKeyPairSync('ed25519', { comment });
    // ssh2 writes one in a few hundred keys in a form that it cannot parse.
    if (!(ssh2.utils.parseKey(privateKey) instanceof Error)) return { privateKey, publicKey };
  }
}

async function readIdentity(keyFile: string): Promise<Omit<Identity, 'isOwn'>> {
  try {
    const privateKey = await readFile(keyFile, 'utf8');
    const parsed = ssh2.utils.parseKey(privateKey);
    if (parsed instanceof Error) throw parsed;
    const publicKey = `${parsed.type} ${parsed.getPublicSSH().toString('base64')}`;
    return { privateKey, publicKey, keyFile };
  } catch (cause) {
    throw new ImageError(
      'invalid-configuration',
      `the private key "${keyFile}" cannot be used: ${(cause as Error).message}; name a key without a passphrase`,
      { cause },
    );
  }
}
