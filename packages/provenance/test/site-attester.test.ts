// Not a unit test: it starts threads.
import assert from 'node:assert/strict';
import { access, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { temporaryDirectory } from '../../../test/fixtures/scratch-directory.ts';
import { readAttestations } from '../src/attestation-directory.ts';
import { readAttestedPackages } from '../src/bom/read-packages.ts';
import { buildFactsOf } from '../src/build-statement.ts';
import { payloadDigest, verifyBundle } from '../src/bundle.ts';
import { ProvenanceError } from '../src/errors.ts';
import { buildDigestOf } from '../src/site-attester.ts';
import type { Signer } from '../src/types.ts';
import { type FinishedUpload, uploadFactsOf } from '../src/upload-statement.ts';
import { provenanceFailure } from './provenance-failure.ts';
import { createSite, finishBuild, NOW, sha256 } from './site-fixture.ts';

const UPLOAD: Omit<FinishedUpload, 'directory'> = {
  'image-id': 'debian-1',
  'image-name': 'debian',
  provider: 'cloud',
  'provider-type': 'openstack',
  'upload-id': 'one',
  'external-id': '7d1f',
  format: 'qcow2',
  sha256: sha256('qcow2 of debian-1'),
  'reported-digests': {},
};

describe('the attester of a site', () => {
  test('a site attests a build, and reports where its key is', async (t) => {
    const { attester, directory, keys, trusted, signer } = await createSite(temporaryDirectory(t));
    assert.deepEqual(attester.secretFiles, [keys.key]);
    assert.equal(attester.keyId, signer.keyId);
    await attester.check();
    await attester.attestBuild(await finishBuild(directory));
    const [found, ...rest] = await readAttestations(directory, 'debian-1');
    assert.ok(found !== undefined);
    assert.deepEqual(rest, []);
    assert.equal((await stat(found.place)).mode & 0o777, 0o644);
    const { statement } = verifyBundle(found, trusted);
    const facts = buildFactsOf(statement);
    assert.equal(facts?.builderId, 'https://ci.example.org/builder-1');
    assert.ok(!found.text.includes(keys.key));
    const key = await readFile(keys.key, 'utf8');
    assert.ok(!found.text.includes(key.split('\n')[1] ?? key));
  });

  test('a site attests a conversion and an upload', async (t) => {
    const { attester, directory, trusted } = await createSite(temporaryDirectory(t));
    const build = await finishBuild(directory);
    assert.equal(await buildDigestOf(directory, 'debian-1'), undefined);
    const early = await attester.attestUpload({ ...UPLOAD, directory });
    assert.equal(
      uploadFactsOf(verifyBundle({ place: '', text: early }, trusted).statement)?.['build-digest'],
      undefined,
    );
    await attester.attestBuild(build);
    const [source] = build.manifest.files;
    assert.ok(source !== undefined);
    const file = { ...source, format: 'vhd' as const, sha256: sha256('vhd') };
    await attester.attestConversion({ imageId: 'debian-1', imageName: 'debian', source, file, directory });
    const text = await attester.attestUpload({ ...UPLOAD, directory });
    const found = await readAttestations(directory, 'debian-1');
    assert.deepEqual(
      found.map(({ place }) => place.slice(place.lastIndexOf('/') + 1)),
      ['build.sigstore.json', 'convert-vhd.sigstore.json', 'upload-one.sigstore.json'],
    );
    assert.equal(found[2]?.text, text);
    const facts = uploadFactsOf(verifyBundle({ place: '', text }, trusted).statement);
    assert.equal(facts?.['build-digest'], payloadDigest(found[0]?.text ?? ''));
    assert.equal(facts['build-digest'], await buildDigestOf(directory, 'debian-1'));
    assert.equal(facts['uploaded-on'], NOW.toISOString());
  });

  test('a site that cannot sign attests nothing', async (t) => {
    const failure = new ProvenanceError('signing-failed', 'the sign-command "kms" exited with 1');
    const { keyId, publicKey } = (await createSite(temporaryDirectory(t))).signer;
    const signer: Signer = { keyId, publicKey, sign: () => Promise.reject(failure) };
    const { attester, directory } = await createSite(temporaryDirectory(t), { signer });
    assert.deepEqual(attester.secretFiles, []);
    await assert.rejects(attester.check(), failure);
    await assert.rejects(attester.attestBuild(await finishBuild(directory)), failure);
    await assert.rejects(attester.attestUpload({ ...UPLOAD, directory }), failure);
    await assert.rejects(access(join(directory, 'debian-1.d')), { code: 'ENOENT' });
  });
});

describe('a bill of materials', () => {
  test('a bill of materials is a subject of the build, and its packages can be read', async (t) => {
    const { attester, directory, trusted } = await createSite(temporaryDirectory(t), {
      billOfMaterials: true,
    });
    await writeFile(join(directory, 'debian-1.packages'), 'os\tdebian\t12\ndeb\topenssl\t3.0.1\tamd64\n');
    await attester.attestBuild(await finishBuild(directory));
    const [found] = await readAttestations(directory, 'debian-1');
    assert.ok(found !== undefined);
    const { statement } = verifyBundle(found, trusted);
    const path = join(directory, 'debian-1.d/bom.cdx.json');
    const text = await readFile(path, 'utf8');
    assert.equal(statement.subjects.find(({ name }) => name === 'bom.cdx.json')?.sha256, sha256(text));
    const packages = await readAttestedPackages(directory, 'debian-1', buildFactsOf(statement));
    assert.deepEqual(
      packages.map(({ name, version }) => `${name} ${version}`),
      ['openssl 3.0.1'],
    );
    await writeFile(path, text.replace('openssl', 'openssI'));
    await assert.rejects(
      readAttestedPackages(directory, 'debian-1', buildFactsOf(statement)),
      provenanceFailure('bill-of-materials-invalid', path, 'was changed'),
    );
    await writeFile(path, Buffer.alloc(9 * 2 ** 20, ' '));
    await assert.rejects(
      readAttestedPackages(directory, 'debian-1', buildFactsOf(statement)),
      provenanceFailure('bill-of-materials-too-large', path),
    );
  });

  test('a bill of materials that would be too large is omitted, and the build is attested', async (t) => {
    const warnings: string[] = [];
    const logger = {
      debug() {},
      info() {},
      error() {},
      warn: (message: string) => void warnings.push(message),
    };
    const site = await createSite(temporaryDirectory(t), { billOfMaterials: true, logger });
    const { attester, directory, trusted } = site;
    const name = 'x'.repeat(150);
    const lines = Array.from({ length: 10_000 }, (_, index) => `deb\t${name}${index}\t1\tamd64\t${name}`);
    await writeFile(join(directory, 'debian-1.packages'), `deb\t\t1\n${lines.join('\n')}`);
    await attester.attestBuild(await finishBuild(directory));
    const [found] = await readAttestations(directory, 'debian-1');
    assert.ok(found !== undefined);
    const facts = buildFactsOf(verifyBundle(found, trusted).statement);
    assert.match(
      facts?.withoutBillOfMaterials ?? '',
      /cannot write the packages of debian-1\.packages: they take more than 8 MiB/,
    );
    assert.equal(warnings.length, 2);
    assert.match(warnings[0] ?? '', /debian-1\.packages has an entry without a usable name or version/);
  });

  test('a bill of materials is made from the list alone, without opening a file of the image', async (t) => {
    const { attester, directory } = await createSite(temporaryDirectory(t), { billOfMaterials: true });
    const build = await finishBuild(directory);
    for (const name of ['debian-1.raw', 'debian-1.qcow2']) await rm(join(directory, name));
    await writeFile(join(directory, 'debian-1.packages'), 'openssl\t3.0.1\n');
    await attester.attestBuild(build);
    assert.match(await readFile(join(directory, 'debian-1.d/bom.cdx.json'), 'utf8'), /"openssl"/);
  });

  test('a bill of materials that cannot be written leaves its reason in the statement', async (t) => {
    const { attester, directory, trusted } = await createSite(temporaryDirectory(t), {
      billOfMaterials: true,
    });
    await attester.attestBuild(await finishBuild(directory));
    const [found] = await readAttestations(directory, 'debian-1');
    assert.ok(found !== undefined);
    const { statement } = verifyBundle(found, trusted);
    assert.deepEqual(
      statement.subjects.map(({ name }) => name),
      ['debian-1.raw', 'debian-1.qcow2'],
    );
    assert.equal(typeof buildFactsOf(statement)?.withoutBillOfMaterials, 'string');
    await assert.rejects(
      readAttestedPackages(directory, 'debian-1', buildFactsOf(statement)),
      provenanceFailure('bill-of-materials-invalid', 'attests no bill of materials'),
    );
  });
});
