import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { UploadRequest } from '@nodepool-builder/image-builder';
import { checksumsOf } from '@nodepool-builder/image-builder/internal';
import { type S3Fixture, s3Fixture } from './s3-fixture.ts';

const BUILD = { name: 'build.sigstore.json', text: '{"build": 1}' };
const UPLOAD = { name: 'upload-1-0123abcd.sigstore.json', text: '{"upload": 1}' };

async function requestFor({ directory }: S3Fixture): Promise<UploadRequest> {
  const path = join(directory, 'image.raw');
  await writeFile(path, randomBytes(1000));
  return {
    uploadId: 'u1',
    imageId: '0001',
    imageName: 'debian',
    file: { format: 'raw', path, size: 1000, checksums: await checksumsOf(path) },
    attestations: [BUILD],
    metadata: { 'attestation-sha256': 'abc' },
  };
}

test('attestations in an object store are kept next to the image, are not listed, and are removed with it', async (t) => {
  const fixture = await s3Fixture(t);
  const provider = fixture.open({}, ['raw']);
  const { externalId, reported } = await provider.upload(await requestFor(fixture));
  assert.match(reported?.['s3-etag'] ?? '', /^[0-9a-f]{32}-1$/);
  assert.deepEqual(await provider.getAttestations(externalId), [BUILD]);
  const changed = { ...BUILD, text: '{"build": 2}' };
  await provider.addAttestations(externalId, [changed, UPLOAD]);
  assert.deepEqual(await provider.getAttestations(externalId), [changed, UPLOAD]);
  assert.ok((await fixture.keys()).includes(`${externalId}.d/${UPLOAD.name}`));
  assert.deepEqual(
    (await provider.list()).map((image) => image.externalId),
    [externalId],
  );
  assert.deepEqual(fixture.lines, []);
  await provider.delete(externalId);
  assert.deepEqual(await fixture.keys(), []);
});

test('a discard in an object store also removes attestations', async (t) => {
  const fixture = await s3Fixture(t);
  const provider = fixture.open({}, ['raw']);
  await provider.upload(await requestFor(fixture));
  await provider.discard('u1');
  assert.deepEqual(await fixture.keys(), []);
});

test('attestations for a missing image, and names with a slash, are rejected', async (t) => {
  const fixture = await s3Fixture(t);
  const provider = fixture.open({}, ['raw']);
  await assert.rejects(provider.getAttestations('debian-1-0123abcd.raw'), { code: 'image-not-found' });
  await assert.rejects(provider.getAttestations('../a'), { code: 'image-not-found' });
  await assert.rejects(provider.addAttestations('debian-1-0123abcd.raw', [BUILD]), {
    code: 'image-not-found',
  });
  const { externalId } = await provider.upload(await requestFor(fixture));
  await assert.rejects(provider.addAttestations(externalId, [{ ...BUILD, name: 'a/b.json' }]), TypeError);
});

test('an object that is too large for an attestation is rejected', async (t) => {
  const fixture = await s3Fixture(t);
  const provider = fixture.open({}, ['raw']);
  const { externalId } = await provider.upload(await requestFor(fixture));
  const Key = `${externalId}.d/large.json`;
  await fixture.client.putObject({ Bucket: fixture.bucket, Key, Body: Buffer.alloc(2 ** 20 + 1) });
  await assert.rejects(
    provider.getAttestations(externalId),
    /more than 1 MiB, so it is not an attestation; remove it/,
  );
});
