import { generateKeyPairSync } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { DiskImage, FinishedBuild, Material } from '@nodepool-builder/image-builder';
import type { Build, ImageDocument, Upload } from '@nodepool-builder/image-manager';
import { openSigner, type Package, readTrustedKeys, SiteAttester } from '@nodepool-builder/provenance';
import type { OriginSource } from '../../../src/attestation/origin/origin.ts';
import { packPackages } from '../../../src/attestation/origin/package-list.ts';

const SHA256 = 'ab'.repeat(32);

/** A store with the documents of attested builds and uploads, and the keys that verify them. */
export class AttestedSite {
  readonly builds: Map<string, Build> = new Map();
  readonly uploads: Map<string, Upload> = new Map();
  readonly documents: ImageDocument[] = [];
  readonly packages: Map<string, string> = new Map();
  readonly directory: string;
  /** Path of the public key. */
  readonly publicKey: string;
  readonly #attester: SiteAttester;

  private constructor(directory: string, publicKey: string, attester: SiteAttester) {
    this.directory = directory;
    this.publicKey = publicKey;
    this.#attester = attester;
  }

  static async create(t: TestContext): Promise<AttestedSite> {
    const directory = await mkdtemp(join(tmpdir(), 'attested-site-'));
    t.after(() => rm(directory, { recursive: true, force: true }));
    const { key, publicKey } = await writeKeyPair(directory, 'attestation');
    const signer = await openSigner({ key });
    const attester = new SiteAttester({
      signer,
      builderId: 'https://ci.example.org/builder-1',
      version: '1.0.0',
      host: 'builder-1',
      billOfMaterials: false,
    });
    return new AttestedSite(directory, publicKey, attester);
  }

  /** Adds a ready build, number by number. */
  async build(
    id: string,
    materials: readonly Material[] = [],
    packages?: readonly Package[],
  ): Promise<Build> {
    const build: Build = {
      id,
      diskimage: 'debian',
      state: 'ready',
      configuration: 'c0ffee',
      reason: 'its first ready build',
      requestedAt: Date.UTC(2026, 0, 1) + this.builds.size,
      withdrawn: false,
    };
    const file = {
      format: 'qcow2',
      size: 8,
      mtime: '2026-01-01T00:00:00.000Z',
      md5: 'cd'.repeat(16),
    } as const;
    const manifest: FinishedBuild['manifest'] = {
      version: 1,
      'image-id': id,
      'image-name': 'debian',
      started: '2026-01-01T00:00:00.000Z',
      finished: '2026-01-01T00:10:00.000Z',
      files: [{ ...file, sha256: SHA256 }],
    };
    const diskimage = { name: 'debian' } as DiskImage;
    const { directory } = this;
    await mkdir(join(directory, `${id}.d`, 'attestations'), { recursive: true });
    await this.#attester.attestBuild({ manifest, diskimage, materials, environment: {}, directory });
    const path = join(directory, `${id}.d`, 'attestations', 'build.sigstore.json');
    this.documents.push({ kind: 'attestation', imageId: id, text: await readFile(path, 'utf8') });
    const list = packages && (await packPackages(packages));
    if (list !== undefined) this.packages.set(id, list);
    this.builds.set(id, build);
    return build;
  }

  /** Adds a ready upload of a build. */
  async upload(id: string, imageId: string, provider: string, fields: Partial<Upload> = {}): Promise<Upload> {
    const upload: Upload = {
      id,
      imageId,
      diskimage: 'debian',
      provider,
      imageName: 'debian',
      state: 'ready',
      externalId: `external-${id}`,
      reason: 'the provider lacks it',
      requestedAt: Date.UTC(2026, 0, 2) + this.uploads.size,
      leftovers: false,
      seen: true,
      ...fields,
    };
    const text = await this.#attester.attestUpload({
      'image-id': imageId,
      'image-name': 'debian',
      provider,
      'provider-type': 'openstack',
      'upload-id': id,
      'external-id': `external-${id}`,
      format: 'qcow2',
      sha256: SHA256,
      'reported-digests': { sha512: 'ef'.repeat(64) },
      directory: this.directory,
    });
    this.documents.push({ kind: 'attestation', imageId, uploadId: id, text });
    this.uploads.set(id, upload);
    return upload;
  }

  /** Sources of origins, with the site's own key unless another one is given. */
  async source(publicKey: string = this.publicKey): Promise<OriginSource> {
    return {
      state: { builds: new Map(this.builds), uploads: new Map(this.uploads), pauses: new Map() },
      keys: await readTrustedKeys([publicKey]),
      store: {
        attestations: async (imageId, uploadId) => {
          return this.documents.filter(
            (one) =>
              one.imageId === imageId &&
              (uploadId === undefined || one.uploadId === undefined || one.uploadId === uploadId),
          );
        },
        packages: async (imageId) => this.packages.get(imageId),
      },
    };
  }
}

/** Writes an Ed25519 key. Returns the paths of both parts. */
export async function writeKeyPair(
  directory: string,
  name: string,
): Promise<{ readonly key: string; readonly publicKey: string }> {
  const pair = generateKeyPairSync('ed25519');
  const [key, publicKey] = [join(directory, `${name}.pem`), join(directory, `${name}.pub`)];
  await writeFile(key, pair.privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  await writeFile(publicKey, pair.publicKey.export({ type: 'spki', format: 'pem' }));
  return { key, publicKey };
}

/** Returns a Debian package. */
export function debianPackage(name: string, version: string): Package {
  return { name, version, architecture: 'amd64', type: 'deb', purl: `pkg:deb/debian/${name}@${version}` };
}
