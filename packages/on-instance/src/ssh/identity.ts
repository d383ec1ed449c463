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
 * Returns the key that the base image accepts, or generates one for the build.
 *
 * @throws ImageError `invalid-configuration` if the file contains no usable private key
 */
export async function identityOf(
  privateKeyFile: string | undefined,
  { keyFile, imageId }: InstanceClaim,
): Promise<Identity> {
  if (privateKeyFile !== undefined) return { ...(await readIdentity(privateKeyFile)), isOwn: false };
  return { ...generateKeyPair(`nodepool-builder-${imageId}`), keyFile, isOwn: true };
}

/** Reads the key that an earlier process generated. */
export async function keptIdentity({ keyFile }: InstanceClaim): Promise<Identity> {
  return { ...(await readIdentity(keyFile)), isOwn: true };
}

/** Key in a line of `authorized_keys`, in base64. */
export function keyOfLine(publicKey: string): string {
  return publicKey.split(' ')[1] ?? '';
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
