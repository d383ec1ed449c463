// Not a unit test: it starts servers and programs.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { CloudError } from '@nodepool-builder/image-builder/plugin';
import { startFaultProxy } from '../../../test/fixtures/fault-proxy/fault-proxy.ts';
import { losesResponse } from '../../../test/fixtures/fault-proxy/faults.ts';
import { requestFor, s3Fixture } from './s3-fixture.ts';

test('a lost response to the start of an upload to S3 leaves nothing behind', async (t) => {
  const fixture = await s3Fixture(t);
  const proxy = await startFaultProxy(fixture.entry().endpoint ?? '');
  t.after(() => proxy.close());
  const lost = proxy.inject({ method: 'POST', path: /\?uploads/ }, losesResponse());
  const provider = fixture.open({ endpoint: proxy.url }, ['raw']);
  await provider.upload(await requestFor(fixture));
  assert.equal(lost.hits, 1);
  const { Uploads: uploads = [] } = await fixture.client.listMultipartUploads({ Bucket: fixture.bucket });
  assert.deepEqual(uploads, []);
});

test('the pointer in S3 names the image that was built last, also after a deletion', async (t) => {
  const fixture = await s3Fixture(t);
  const provider = fixture.open({ prefix: 'ci/' }, ['raw']);
  const pointer = async (): Promise<Record<string, unknown>> => {
    const Key = 'ci/debian-latest.raw.json';
    const { Body: body } = await fixture.client.getObject({ Bucket: fixture.bucket, Key });
    return JSON.parse((await body?.transformToString()) ?? '') as Record<string, unknown>;
  };
  const newer = await provider.upload(await requestFor(fixture, { number: 2, size: 1000 }));
  const older = await provider.upload(await requestFor(fixture, { number: 1, size: 1000 }));
  assert.equal((await pointer())['external-id'], newer.externalId);
  assert.equal((await pointer()).built, '2026-05-02T00:00:00.000Z');
  await provider.delete(newer.externalId);
  assert.equal((await pointer())['external-id'], older.externalId);
  await provider.delete(older.externalId);
  assert.deepEqual(await fixture.keys(), []);
});

test('other programs’ objects in S3 are neither replaced nor deleted', async (t) => {
  const fixture = await s3Fixture(t);
  const provider = fixture.open({}, ['raw']);
  const request = await requestFor(fixture, { size: 1000 });
  const { externalId: Key } = await provider.upload(request);
  await provider.delete(Key);
  await fixture.client.putObject({ Bucket: fixture.bucket, Key, Body: 'other' });
  await assert.rejects(provider.upload(request), { code: 'provider-refused' });
  await assert.rejects(provider.delete(Key), { code: 'not-ours' });
  await provider.discard('u1');
  assert.deepEqual(await fixture.keys(), [Key]);
  assert.deepEqual(await provider.list(), []);
});

test('a download from S3 whose bytes differ from the manifest leaves no file', async (t) => {
  const fixture = await s3Fixture(t);
  const provider = fixture.open({}, ['raw']);
  const { externalId: Key } = await provider.upload(await requestFor(fixture, { size: 1000 }));
  await fixture.client.putObject({ Bucket: fixture.bucket, Key, Body: randomBytes(1000) });
  const path = join(fixture.directory, 'copy.raw');
  await assert.rejects(provider.download(Key, path), /SHA-256/);
  await assert.rejects(readFile(path), { code: 'ENOENT' });
});

test('rejected credentials and a missing bucket cause S3 errors with the reason, without the secret', async (t) => {
  const fixture = await s3Fixture(t);
  const request = await requestFor(fixture, { size: 1000 });
  const file = join(fixture.directory, 'wrong');
  await writeFile(file, '[default]\naws_access_key_id = test:tester\naws_secret_access_key = wrong-secret\n');
  await assert.rejects(fixture.open({ 'shared-credentials-file': file }, ['raw']).list(), (error) => {
    assert.ok(error instanceof CloudError);
    assert.equal(error.code, 'auth-failed');
    assert.ok(!error.message.includes('wrong-secret'));
    return true;
  });
  const missing = fixture.open({ 'bucket-name': 'no-such-bucket' }, ['raw']);
  await assert.rejects(missing.upload(request), { code: 'not-found' });
  assert.ok(!fixture.lines.join('\n').includes(fixture.secret));
});

test('the S3 diagnosis reports whether the bucket can be used', async (t) => {
  const fixture = await s3Fixture(t);
  const statesOf = async (bucket: string): Promise<string[]> => {
    const results = await Array.fromAsync(fixture.open({ 'bucket-name': bucket }).diagnose());
    return results.map(({ status }) => status);
  };
  assert.deepEqual(await statesOf(fixture.bucket), ['ok', 'ok']);
  assert.deepEqual(await fixture.keys(), []);
  assert.deepEqual(await statesOf('no-such-bucket'), ['problem']);
});
