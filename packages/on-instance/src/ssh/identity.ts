import { readFile } from 'node:fs/promises';
import { ImageError } from '@nodepool-builder/image-builder';
import ssh2 from 'ssh2';
import type { InstanceClaim } from '../instance-records.ts';

/** SSH key for the machine of a build. */
export interface Identity {
  /** In OpenSSH's format. */
  readonly privateKey: string;
  /** A line of `authorized_keys`. */
  readonly publicKey: string;
  /** Path of {@link privateKey}, written only if it must outlive the build. */
  readonly keyFile: string;
  /** Whether it was generated for the build: then it is removed before the machine is captured. */
  readonly isOwn: boolean;
}

/**
 * Returns the key that the base image accepts, that of the earlier process, or a generated one.
 *
 * @param isResumed whether an earlier process started the build
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

/** Generates a pair of ed25519 keys. */
export function generateKeyPair(comment: string): Pick<Identity, 'privateKey' | 'publicKey'> {
  for (;;) {
    const { private: privateKey, public: publicKey } = ssh2.utils.generateKeyPairSync('ed25519', { comment });
    // One of some hundred keys is written by ssh2 in a form that it cannot parse.
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
      `the private key "${keyFile}" cannot be used: ${(cause as Error).message}; name one that has no passphrase`,
      { cause },
    );
  }
}
