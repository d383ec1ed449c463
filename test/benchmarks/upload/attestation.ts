import { execFile, execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { DirectoryProvider, type FinishedBuild } from '@nodepool-builder/image-builder';
import { checksumsOf } from '@nodepool-builder/image-builder/internal';
import { openSigner, SiteAttester } from '@nodepool-builder/provenance';
import { builderCommand } from '../../fixtures/builder-process.ts';
import type { Benchmark, BenchmarkContext, Measurement } from '../benchmark.ts';
import { bestOf, compare, ratioOf, ratioRow, rowsOf, type Unit } from '../comparison.ts';
import { distributionOf } from '../distribution.ts';
import { IMAGE_LENGTH, largeImage } from './large-image.ts';

const SECONDS: Unit = { name: 's', digits: 2 };

const ROUNDS = 5;

/** Packages and build materials of a small server. */
const PACKAGES = 500;
const MATERIALS = 30;

const IMAGE_ID = 'image';

/** Measures the cost of attestations and the speed of verifying a file. */
export const attestation: Benchmark = { name: 'attestation', run };

async function run(context: BenchmarkContext): Promise<Measurement[]> {
  const { after, signal } = context;
  const path = await largeImage(context);
  const images = dirname(path);
  const keys = await mkdtemp(join(tmpdir(), 'bench-attestation-'));
  after(() => rm(keys, { recursive: true }));
  const [key, publicKey] = [join(keys, 'key.pem'), join(keys, 'key.pub')];
  execFileSync('openssl', ['genpkey', '-algorithm', 'ed25519', '-out', key]);
  execFileSync('openssl', ['pkey', '-in', key, '-pubout', '-out', publicKey]);
  execFileSync('chmod', ['600', key]);
  const { build, ...file } = await finishedBuild(path);
  const signer = await openSigner({ key });
  const names = { builderId: 'https://ci.example.org/builder-1', version: '0.1.0', host: 'builder-1' };
  const attester = new SiteAttester({ ...names, signer, billOfMaterials: true });
  const attestUpload = (externalId: string): Promise<unknown> =>
    attester.attestUpload({
      'image-id': IMAGE_ID,
      'image-name': 'debian',
      provider: 'pool',
      'provider-type': 'directory',
      'upload-id': 'upload-1',
      'external-id': externalId,
      format: 'raw',
      sha256: file.checksums.sha256,
      'reported-digests': { sha256: file.checksums.sha256 },
      directory: images,
    });

  const pool = join(images, 'pool');
  await mkdir(pool);
  const provider = new DirectoryProvider({ name: 'pool', directory: pool, formats: ['raw'] });
  const [hashing, attesting] = [
    'its digests, the last step of a build',
    'attestation of the build, with a bill of materials of 500 packages',
  ];
  const builds = await compare(
    [
      { name: hashing, sample: () => seconds(() => checksumsOf(path, { signal })) },
      { name: attesting, sample: () => seconds(() => attester.attestBuild(build)) },
    ],
    context,
    ROUNDS,
  );
  const [uploading, afterwards] = ['a copy to a directory', 'attestation of the upload'];
  let externalId = '';
  const uploads = await compare(
    [
      {
        name: uploading,
        sample: async () => {
          const request = { uploadId: 'upload-1', imageId: IMAGE_ID, imageName: 'debian', file };
          const taken = await seconds(async () => {
            ({ externalId } = await provider.upload(request, { signal }));
          });
          await provider.delete(externalId);
          return taken;
        },
      },
      { name: afterwards, sample: () => seconds(() => attestUpload(externalId)) },
    ],
    context,
    ROUNDS,
  );
  const [command, args] = builderCommand('verify', path, '--key', publicKey);
  const verify = [...args, '--attestations', join(images, `${IMAGE_ID}.d`, 'attestations')];
  const program = (name: string, ...rest: readonly string[]): (() => Promise<number>) => {
    return () => seconds(() => promisify(execFile)(name, rest, { signal }));
  };
  const [md5, sha256, ours] = ['`md5sum`', '`sha256sum`', '`nodepool-builder verify`'];
  const hashes = await compare(
    [
      { name: md5, sample: program('md5sum', path) },
      { name: sha256, sample: program('sha256sum', path) },
      { name: ours, sample: program(command, ...verify) },
    ],
    context,
    ROUNDS,
  );
  const slowest = bestOf(hashes, [md5, sha256]);
  return [
    ...rowsOf(IMAGE_LENGTH, SECONDS, builds),
    costRow('Cost of attesting a build of one minute', builds.get(attesting) ?? [], 60),
    ...rowsOf(IMAGE_LENGTH, SECONDS, uploads),
    ratioRow(
      'Cost of attesting an upload, against a copy to a directory',
      ratioOf(uploads, afterwards, uploading),
      {
        atMost: 0.01,
      },
    ),
    ...rowsOf(`Verifying ${IMAGE_LENGTH}`, SECONDS, hashes),
    ratioRow(`Verification against the slowest hash, ${slowest}`, ratioOf(hashes, ours, slowest), {
      atMost: 1.15,
    }),
  ];
}

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const begin = performance.now();
  await work();
  return (performance.now() - begin) / 1000;
}

/** Returns the row of a cost as a fraction of a duration. */
function costRow(what: string, samples: readonly number[], whole: number): Measurement {
  const part = distributionOf(samples).median / whole;
  return {
    what: `**${what}**`,
    result: `${(part * 100).toFixed(3)} %`,
    bar: { limit: '≤ 1 %', met: part <= 0.01 },
  };
}

/** Returns the image as a diskimage-builder build leaves it. */
async function finishedBuild(path: string): Promise<{ readonly build: FinishedBuild } & UploadedFile> {
  const directory = dirname(path);
  const { size, mtime } = await stat(path);
  const checksums = await checksumsOf(path);
  const packages = Array.from(
    { length: PACKAGES },
    (_, index) => `deb\tpackage-${index}\t1.${index}-1\tamd64\n`,
  );
  await writeFile(join(directory, `${IMAGE_ID}.packages`), packages.join(''));
  const format = 'raw' as const;
  const now = new Date().toISOString();
  const build: FinishedBuild = {
    manifest: {
      version: 1,
      'image-id': IMAGE_ID,
      'image-name': 'debian',
      started: now,
      finished: now,
      files: [{ format, size, mtime: mtime.toISOString(), ...checksums }],
    },
    diskimage: { name: 'debian', formats: [format] },
    materials: Array.from({ length: MATERIALS }, (_, index) => ({
      name: `element ${basename(path)} ${index}`,
      uri: `git+https://opendev.org/openstack/element-${index}@${'0'.repeat(40)}`,
      digest: { gitCommit: '0'.repeat(40) },
    })),
    environment: {},
    directory,
  };
  return { build, path, format, size, checksums };
}

interface UploadedFile {
  readonly path: string;
  readonly format: 'raw';
  readonly size: number;
  readonly checksums: { readonly md5: string; readonly sha256: string };
}
