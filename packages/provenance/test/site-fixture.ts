import { createHash, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { FinishedBuild, Material } from '@nodepool-builder/image-builder';
import { openSigner, readTrustedKeys, SiteAttester, type SiteAttesterSettings } from '../src/index.ts';
import type { Signer, TrustedKey } from '../src/types.ts';

/** Types of keys that can sign. */
export const KEY_TYPES = {
  Ed25519: () => generateKeyPairSync('ed25519'),
  'ECDSA P-256': () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  'ECDSA P-384': () => generateKeyPairSync('ec', { namedCurve: 'P-384' }),
} as const;

/** A key pair in two files. */
export interface KeyFiles {
  readonly key: string;
  readonly publicKey: string;
}

/** Writes a key pair to `<name>.pem` and `<name>.pub`. */
export async function writeKeys(
  directory: string,
  name = 'site',
  create: () => { privateKey: KeyObject; publicKey: KeyObject } = KEY_TYPES.Ed25519,
): Promise<KeyFiles> {
  const { privateKey, publicKey } = create();
  const files = { key: join(directory, `${name}.pem`), publicKey: join(directory, `${name}.pub`) };
  await writeFile(files.key, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  await writeFile(files.publicKey, publicKey.export({ type: 'spki', format: 'pem' }));
  return files;
}

/** Time in all statements of the fixture. */
export const NOW = new Date('2026-11-24T12:00:00.000Z');

export const MATERIALS: readonly Material[] = [
  {
    name: 'element debian-minimal',
    uri: 'git+https://opendev.org/openstack/diskimage-builder@aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',
    digest: { gitCommit: 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' },
  },
  { name: 'base image', uri: 'https://example.org/base.qcow2', digest: { sha256: 'b'.repeat(64) } },
];

/** A site with a key: an image directory, and what signs and verifies in it. */
export interface Site {
  readonly directory: string;
  readonly keys: KeyFiles;
  readonly signer: Signer;
  readonly trusted: readonly TrustedKey[];
  readonly attester: SiteAttester;
}

export async function createSite(
  directory: string,
  settings: Partial<SiteAttesterSettings> = {},
  keyType: keyof typeof KEY_TYPES = 'Ed25519',
): Promise<Site> {
  const keys = await writeKeys(directory, 'site', KEY_TYPES[keyType]);
  const signer = await openSigner({ key: keys.key });
  const attester = new SiteAttester({
    signer,
    builderId: 'https://ci.example.org/builder-1',
    version: '1.2.3',
    host: 'builder-1',
    billOfMaterials: false,
    parameters: () => ({ 'configuration-digest': 'c'.repeat(64), builder: 'dib' }),
    now: () => NOW,
    ...settings,
  });
  return { directory, keys, signer, trusted: await readTrustedKeys([keys.publicKey]), attester };
}

export function sha256(content: string): string {
  return createHash('sha256').update(content).digest('hex');
}

/** Writes the qcow2 and the raw file of an image, and describes them as a finished build. */
export async function finishBuild(
  directory: string,
  imageId = 'debian-1',
  changes: Partial<FinishedBuild> = {},
): Promise<FinishedBuild> {
  await mkdir(directory, { recursive: true });
  const files = await Promise.all(
    (['raw', 'qcow2'] as const).map(async (format) => {
      const content = `${format} of ${imageId}`;
      await writeFile(join(directory, `${imageId}.${format}`), content);
      const mtime = NOW.toISOString();
      return { format, size: content.length, mtime, md5: '0'.repeat(32), sha256: sha256(content) };
    }),
  );
  return {
    manifest: {
      version: 1,
      'image-id': imageId,
      'image-name': 'debian',
      started: '2026-11-24T11:00:00.000Z',
      finished: '2026-11-24T11:30:00.000Z',
      files,
    },
    diskimage: { name: 'debian', formats: ['raw', 'qcow2'] },
    materials: MATERIALS,
    environment: { DIB_RELEASE: 'bookworm', PASSWORD: '***' },
    directory,
    ...changes,
  };
}
