// Not a unit test: it starts flock.
import assert from 'node:assert/strict';
import { chmodSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import type { WorkFailError } from '@nodepool-builder/gearman-node';
import {
  type AttestationDocument,
  DIRECTORY_MODULE,
  ImageRepository,
  type UploadRequest,
  type UploadResult,
} from '@nodepool-builder/image-builder';
import { payloadDigest } from '@nodepool-builder/provenance';
import { FakeImageProvider } from '../../../../../test/doubles/fake-image-provider.ts';
import { RecordingLogger } from '../../../../../test/fixtures/recording-logger.ts';
import { temporaryDirectory } from '../../../../../test/fixtures/scratch-directory.ts';
import {
  attestImage,
  type KeyFiles,
  readDocument,
  statementIn,
  writeKeys,
} from '../../../../../test/fixtures/site-key.ts';
import { undoAfter } from '../../../../../test/fixtures/undo-after.ts';
import { waitUntil } from '../../../../../test/fixtures/wait-until.ts';
import { type AttestationConfiguration, SiteAttestation } from '../../../src/attestation/site-attestation.ts';
import { listedProvider, toProvider } from '../../../src/configuration/provider.ts';
import { RunningJobs } from '../../../src/daemon/jobs/running-jobs.ts';
import { Statistics } from '../../../src/daemon/jobs/statistics.ts';
import { runUploadJob, type UploadJobContext } from '../../../src/daemon/jobs/upload-job.ts';
import { Uploads } from '../../../src/daemon/jobs/uploads.ts';
import { fakeJob } from './fake-job.ts';
import { readUploadRecords } from './upload-record.ts';

const NO_HOST = { env: {}, cwd: '/', home: '/', warn: assert.fail };

/** A provider that reports a digest, and stores attestations next to its images. */
class KeepingProvider extends FakeImageProvider {
  readonly requests: UploadRequest[] = [];
  readonly kept = new Map<string, AttestationDocument>();

  override async upload(...args: Parameters<FakeImageProvider['upload']>): Promise<UploadResult> {
    const [request] = args;
    this.requests.push(request);
    for (const document of request.attestations ?? []) this.kept.set(document.name, document);
    return { ...(await super.upload(...args)), reported: { md5: 'abc' } };
  }

  override async addAttestations(_: string, documents: readonly AttestationDocument[]): Promise<void> {
    for (const document of documents) this.kept.set(document.name, document);
  }
}

interface Site {
  readonly directory: string;
  readonly keys: KeyFiles;
  readonly provider: KeepingProvider;
  readonly run: (settings: Site['settings'], argument?: object) => Promise<string>;
  readonly settings: Omit<AttestationConfiguration, 'diskimages'>;
}

/** Creates a site with image `1` in raw. */
async function setUp(t: TestContext, formats: readonly ('raw' | 'qcow2')[] = ['raw']): Promise<Site> {
  const directory = temporaryDirectory(t);
  writeFileSync(join(directory, '1.raw'), 'an image');
  const keys = await writeKeys(temporaryDirectory(t));
  const provider = new KeepingProvider({ formats });
  const logger = new RecordingLogger();
  const run: Site['run'] = async (settings, argument = {}) => {
    const repository = await ImageRepository.open(directory);
    undoAfter(t, () => repository.close());
    const records = join(directory, '.nodepool-builder/uploads');
    const uploads = await Uploads.open(records, { provider: () => undefined, logger });
    const source = { name: 'fake', type: 'directory', directory, images: [{ name: 'debian' }] } as const;
    const configuration = await toProvider(listedProvider('', source, DIRECTORY_MODULE, String), NO_HOST);
    const context: UploadJobContext = {
      repository,
      running: new RunningJobs(),
      logDirectory: join(directory, 'logs'),
      providers: new Map([['fake', { configuration, provider }]]),
      configuration: {
        maxDiskSize: 2 ** 30,
        compressesQcow2: false,
        'build-environment': [],
        'build-log-retention': 7,
        'public-variables': [],
      },
      attestation: new SiteAttestation({ ...settings, diskimages: [] }, logger),
      uploads,
      services: new Map(),
      statistics: new Statistics({}, logger),
      logger: () => logger,
    };
    const text = JSON.stringify({ provider: 'fake', 'image-name': 'debian', ...argument });
    try {
      const result = await runUploadJob(context, fakeJob('image-upload:1', text));
      // The record of the upload is removed after the result.
      await waitUntil('no record', async () => (await readUploadRecords(records)).length === 0);
      return result;
    } finally {
      await uploads.close();
      await repository.close();
    }
  };
  const settings = { attestation: { key: keys.key, 'bill-of-materials': false } };
  return { directory, keys, provider, run, settings };
}

/** Files that a rejected upload must not change. */
function filesOf(directory: string): readonly string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((name) => !/owner\.json|lock$|^logs/.test(name))
    .toSorted();
}

it('an upload is attested, and the provider gets the build’s digest and all attestations', async (t) => {
  const { directory, keys, provider, run, settings } = await setUp(t);
  await attestImage(directory, '1', keys.key);
  const result = JSON.parse(await run(settings, { attestations: true })) as {
    'external-id': string;
    attestations: readonly string[];
  };
  const build = await readDocument(directory, '1', 'build.sigstore.json');
  const [first, last = ''] = result.attestations;
  assert.equal(first, build);
  assert.equal(result.attestations.length, 2);
  const { subject, predicate } = statementIn(last);
  assert.equal(subject[0]?.name, '1.raw');
  assert.equal(predicate.provider, 'fake');
  assert.equal(predicate['external-id'], result['external-id']);
  assert.deepEqual(predicate['reported-digests'], { md5: 'abc' });
  assert.equal(predicate['build-digest'], payloadDigest(build));
  const [request] = provider.requests;
  assert.deepEqual(request?.metadata, { 'attestation-sha256': payloadDigest(build) });
  assert.deepEqual(
    request?.attestations?.map(({ name }) => name),
    ['build.sigstore.json'],
  );
  assert.deepEqual([...provider.kept.values()].map(({ text }) => text).toSorted(), [build, last].toSorted());
});

it('a provider keeps the bill of materials, unless it is too large for a document', async (t) => {
  const { directory, keys, provider, run, settings } = await setUp(t);
  await attestImage(directory, '1', keys.key);
  const path = join(directory, '1.d/bom.cdx.json');
  writeFileSync(path, ' '.repeat(2 ** 20 + 1));
  await run(settings);
  writeFileSync(path, '{}');
  const { attestations } = JSON.parse(await run(settings, { attestations: true })) as {
    attestations: readonly string[];
  };
  assert.equal(attestations.length, 2, 'it is no attestation');
  assert.deepEqual(
    provider.requests.map((request) => request.attestations?.map(({ name }) => name)),
    [['build.sigstore.json'], ['build.sigstore.json', 'bom.cdx.json']],
  );
});

it('an upload with attestations returns the same result to clients that do not request them', async (t) => {
  const { run, settings } = await setUp(t);
  const result = await run(settings);
  assert.match(result, /^\{"external-id": "fake\/[^"]+"\}$/);
});

it('an upload whose key cannot sign sends nothing', async (t) => {
  const { provider, run } = await setUp(t);
  const attestation = { 'sign-command': ['false'], 'public-key': '', 'bill-of-materials': false };
  const { publicKey } = await writeKeys(temporaryDirectory(t));
  const settings = { attestation: { ...attestation, 'public-key': publicKey } };
  await assert.rejects(
    run(settings),
    /the upload cannot be attested: the sign-command "false" exited with 1/,
  );
  await assert.rejects(
    run({ attestation: { key: '/nonexistent', 'bill-of-materials': false } }),
    /"\/nonexistent"/,
  );
  assert.equal(provider.requests.length, 0);
});

it('an upload that cannot be attested afterwards is discarded', async (t) => {
  const { keys, provider, run } = await setUp(t);
  const directory = temporaryDirectory(t);
  const command = join(directory, 'sign');
  // It signs once, for the check.
  writeFileSync(
    command,
    `#!/bin/sh\ntest -e ${directory}/used && exit 3\ntouch ${directory}/used\nT=$(mktemp -p ${directory})\ncat > $T\n` +
      `openssl pkeyutl -sign -rawin -inkey ${keys.key} -in $T\n`,
  );
  chmodSync(command, 0o755);
  const attestation = { 'sign-command': [command], 'public-key': keys.publicKey, 'bill-of-materials': false };
  await assert.rejects(run({ attestation }), (error: WorkFailError) => {
    assert.match(error.message, /the upload could not be attested: the sign-command ".*" exited with 3/);
    assert.match(error.message, /the image was deleted from fake/);
    return true;
  });
  assert.equal(provider.requests.length, 1);
  assert.equal(provider.images.size, 0);
});

it('an attested image is uploaded where an attestation is required', async (t) => {
  const { directory, keys, provider, run } = await setUp(t);
  await attestImage(directory, '1', keys.key);
  const required = { 'trusted-keys': [keys.publicKey], builders: ['https://ci.example.org/*'] };
  await run({ 'require-attestation': required });
  assert.equal(provider.requests.length, 1);
  // The default is the site's own key.
  await run({ attestation: { key: keys.key, 'bill-of-materials': false }, 'require-attestation': {} });
  assert.equal(provider.requests.length, 2);
});

it('a rejected image is neither uploaded nor touched, and the job says which rule rejected it', async (t) => {
  const { directory, keys, provider, run } = await setUp(t);
  const other = await writeKeys(temporaryDirectory(t), 'other');
  const trusted = { 'trusted-keys': [keys.publicKey] };
  const refused = async (required: object, pattern: RegExp): Promise<void> => {
    const before = filesOf(directory);
    await assert.rejects(run({ 'require-attestation': required }), (error: Error) => {
      assert.match(error.message, /^the upload of image 1 to fake is refused by require-attestation: /);
      assert.match(error.message, pattern);
      assert.equal(error.name, 'WorkFailError');
      return true;
    });
    assert.deepEqual(filesOf(directory), before);
  };
  await run({}); // creates the directories
  await refused(trusted, /trusted-keys: /);
  await attestImage(directory, '1', keys.key, { finished: new Date(Date.now() - 3_600_000) });
  await refused({ 'trusted-keys': [other.publicKey] }, /trusted-keys: /);
  await refused({ ...trusted, builders: ['https://elsewhere/*'] }, /builders: /);
  await refused({ ...trusted, 'max-age': 60 }, /max-age: .* exceeds 60 s/);
  await refused({ ...trusted, 'source-repositories': ['https://opendev.org/*'] }, /source-repositories: /);
  await refused({ ...trusted, 'forbidden-packages': ['telnetd'] }, /forbidden-packages: /);
  writeFileSync(join(directory, '1.raw'), 'other image');
  await refused(trusted, /trusted-keys: /);
  assert.equal(provider.requests.length, 1);
});

it('an image that would be converted without an attestation is rejected before the conversion', async (t) => {
  const { directory, keys, provider, run } = await setUp(t, ['qcow2']);
  await attestImage(directory, '1', keys.key);
  const required = { 'trusted-keys': [keys.publicKey] };
  await assert.rejects(
    run({ 'require-attestation': required }),
    /the conversion from raw would not be attested; set attestation\.key/,
  );
  assert.equal(provider.requests.length, 0);
  rmSync(join(directory, '1.raw'));
});
