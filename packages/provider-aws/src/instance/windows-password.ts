import { constants, generateKeyPair, privateDecrypt } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { makeStateDirectory, unlessMissing, writeDurably } from '@nodepool-builder/image-builder/internal';
import type { AwsRegion } from '../aws-session.ts';

const BITS = 2048;

/** A key pair for the password of a Windows instance in EC2: Windows encrypts it, and only this host can decrypt it. */
export interface PasswordKey {
  /** Public key as a line of `authorized_keys`. */
  readonly publicKey: string;
  /** Private key in PEM format. */
  readonly privateKey: string;
}

export async function newPasswordKey(): Promise<PasswordKey> {
  const pair = await promisify(generateKeyPair)('rsa', { modulusLength: BITS });
  const { e = '', n = '' } = pair.publicKey.export({ format: 'jwk' });
  const parts = [Buffer.from('ssh-rsa'), wireInteger(e), wireInteger(n)];
  const wire = Buffer.concat(parts.flatMap((part) => [lengthOf(part), part]));
  const privateKey = pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  return { publicKey: `ssh-rsa ${wire.toString('base64')} nodepool-builder`, privateKey };
}

/** Encodes a positive integer as in RFC 4251. */
function wireInteger(base64url: string): Buffer {
  const bytes = Buffer.from(base64url, 'base64url');
  return (bytes[0] ?? 0) < 0x80 ? bytes : Buffer.concat([Buffer.of(0), bytes]);
}

function lengthOf(bytes: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return length;
}

/** Stores the private key of a launch in a file that only this user can read. */
export async function keepPasswordKey(directory: string, launch: string, privateKey: string): Promise<void> {
  await makeStateDirectory(directory);
  await writeDurably(fileOf(directory, launch), privateKey);
}

export async function forgetPasswordKey(directory: string, launch: string): Promise<void> {
  await rm(fileOf(directory, launch), { force: true });
}

function fileOf(directory: string, launch: string): string {
  return join(directory, `${launch}.key`);
}

/**
 * Reads the administrator's password. Undefined until Windows has set it, and if this host does not have the key of
 * this launch.
 */
export async function readPassword(
  { region, directory }: { readonly region: AwsRegion; readonly directory: string },
  launch: string,
  InstanceId: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const key = await unlessMissing(readFile(fileOf(directory, launch), 'utf8'));
  if (key === undefined) return undefined;
  const { PasswordData: data = '' } = await region.ec2(signal).getPasswordData({ InstanceId });
  if (data.trim() === '') return undefined;
  // Not all Node releases can decrypt with PKCS #1 padding. The padding is 0, 2, nonzero bytes, 0, then the password.
  const padded = privateDecrypt({ key, padding: constants.RSA_NO_PADDING }, Buffer.from(data, 'base64'));
  return padded.subarray(padded.indexOf(0, 2) + 1).toString();
}
