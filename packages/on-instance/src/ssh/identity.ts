import { readFile } from 'node:fs/promises';
import { ImageError } from '@nodepool-builder/image-builder';
import ssh2 from 'ssh2';
import type { InstanceClaim } from '../instance-records.ts';

/** Who logs in to the machine of a build. */
export interface Identity {
  /** As OpenSSH writes it. */
  readonly privateKey: string;
  /** A line of `authorized_keys`. */
  readonly publicKey: string;
  /** Where {@link privateKey} is, or will be if it has to outlive the build. */
  readonly keyFile: string;
  /** Whether it was made for the build: then it lets in nobody else, and goes before the machine becomes an image. */
  readonly isOwn: boolean;
}

/**
 * The key that the base image lets in, or one made for the build.
 *
 * @throws ImageError `invalid-configuration` if the file has no private key that can be used
 */
export async function identityOf(
  privateKeyFile: string | undefined,
  { keyFile, imageId }: InstanceClaim,
): Promise<Identity> {
  if (privateKeyFile !== undefined) return { ...(await readIdentity(privateKeyFile)), isOwn: false };
  return { ...generateKeyPair(`nodepool-builder-${imageId}`), keyFile, isOwn: true };
}

/** That of a process before this one. */
export async function keptIdentity({ keyFile }: InstanceClaim): Promise<Identity> {
  return { ...(await readIdentity(keyFile)), isOwn: true };
}

/** The key itself in a line of `authorized_keys`, in base64. */
export function keyOfLine(publicKey: string): string {
  return publicKey.split(' ')[1] ?? '';
}

/** A pair of ed25519 keys. */
export function generateKeyPair(comment: string): Pick<Identity, 'privateKey' | 'publicKey'> {
  for (;;) {
    const { private: privateKey, public: publicKey } = ssh2.utils.generateKeyPairSync('ed25519', { comment });
    // Of some hundred keys ssh2 writes one in a way that it cannot read itself.
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
