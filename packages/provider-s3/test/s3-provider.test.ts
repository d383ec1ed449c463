// Not a unit test: it starts servers and programs.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { UploadRequest } from '@nodepool-builder/image-builder';
import { CloudError, checksumsOf } from '@nodepool-builder/image-builder/module-kit';
import { startFaultProxy } from '../../../test/fixtures/fault-proxy/fault-proxy.ts';
import { losesAnswer } from '../../../test/fixtures/fault-proxy/faults.ts';
import { type S3Fixture, s3Fixture } from './s3-fixture.ts';

const MIB = 2 ** 20;

/** Of three parts. */
const SIZE = 40 * MIB + 5;

async function requestFor(
  { directory }: S3Fixture,
  { number = 1, size = SIZE }: { number?: number; size?: number } = {},
): Promise<UploadRequest> {
  const path = join(directory, `image${number}.raw`);
  await writeFile(path, randomBytes(size));
  return {
    uploadId: `u${number}`,
    imageId: `debian-000000000${number}`,
    imageName: 'debian',
    builtAt: new Date(Date.UTC(2026, 4, number)),
    file: { format: 'raw', path, size, checksums: await checksumsOf(path) },
  };
}

/** Requests that change something, each after which the uploading process is killed once. */
const STEPS = [
  ['PutObject', 1],
  ['CreateMultipartUpload', 1],
  ['PutObject', 2],
  ['UploadPart', 1],
  ['UploadPart', 3],
  ['CompleteMultipartUpload', 1],
  ['PutObject', 3],
  ['DeleteObject', 1],
] as const;

/** Steps after which a discard is tried, too. */
const DISCARDED: ReadonlySet<string> = new Set(['CreateMultipartUpload 1', 'UploadPart 3', 'PutObject 3']);

for (const [task, count] of STEPS) {
  for (const end of DISCARDED.has(`${task} ${count}`)
    ? (['upload', 'discard'] as const)
    : (['upload'] as const)) {
    const what = end === 'upload' ? 'finished by another attempt' : 'removed by a discard';
    test(`an upload to S3 that was killed at ${task} ${count} is ${what}`, async (t) => {
      const fixture = await s3Fixture(t);
      const request = await requestFor(fixture);
      const entry = fixture.entry({ 'upload-concurrency': 1 });
      const program = join(import.meta.dirname, 'killed-upload.ts');
      const args = [...process.execArgv.filter((argument) => !argument.startsWith('--test')), program];
      const settings = JSON.stringify({
        entry,
        request: { ...request, builtAt: undefined },
        step: { task, count },
      });
      const child = spawn(process.execPath, [...args, settings], { stdio: ['ignore', 'inherit', 'inherit'] });
      assert.deepEqual(await once(child, 'exit'), [null, 'SIGKILL']);

      const provider = fixture.open({}, ['raw']);
      if (end === 'discard') {
        for (const { uploadId } of await provider.listPartialUploads()) assert.equal(uploadId, 'u1');
        await provider.discard('u1');
        assert.deepEqual(await fixture.keys(), []);
      } else {
        const { externalId } = await provider.upload(request);
        assert.match(externalId, /^debian-debian-0000000001-[0-9a-f]{8}\.raw$/);
        assert.deepEqual(await fixture.keys(), [externalId, `${externalId}.json`, 'debian-latest.raw.json']);
        const copy = join(fixture.directory, 'copy.raw');
        await provider.download(externalId, copy);
        assert.ok((await readFile(copy)).equals(await readFile(request.file.path)));
      }
      assert.deepEqual(await provider.listPartialUploads(), []);
      const { Uploads: open = [] } = await fixture.client.listMultipartUploads({ Bucket: fixture.bucket });
      assert.deepEqual(open, []);
    });
  }
}

test('parts that the object store has are not sent again', async (t) => {
  const fixture = await s3Fixture(t);
  const request = await requestFor(fixture);
  const program = join(import.meta.dirname, 'killed-upload.ts');
  const args = [...process.execArgv.filter((argument) => !argument.startsWith('--test')), program];
  const step = { task: 'UploadPart', count: 2 };
  const entry = fixture.entry({ 'upload-concurrency': 1 });
  const settings = JSON.stringify({ entry, request: { ...request, builtAt: undefined }, step });
  const child = spawn(process.execPath, [...args, settings], { stdio: ['ignore', 'inherit', 'inherit'] });
  await once(child, 'exit');
  const provider = fixture.open({}, ['raw']);
  await provider.upload(request);
  assert.deepEqual(
    fixture.tasks.filter((task) => task.endsWith('Part')),
    ['UploadPart'],
  );
  assert.deepEqual(
    (await provider.list()).map(({ uploadId }) => uploadId),
    ['u1'],
  );
});

test('a lost response to the start of an upload to S3 leaves nothing behind', async (t) => {
  const fixture = await s3Fixture(t);
  const proxy = await startFaultProxy(fixture.entry().endpoint ?? '');
  t.after(() => proxy.close());
  const lost = proxy.inject({ method: 'POST', path: /\?uploads/ }, losesAnswer());
  const provider = fixture.open({ endpoint: proxy.url }, ['raw']);
  await provider.upload(await requestFor(fixture));
  assert.equal(lost.hits, 1);
  const { Uploads: uploads = [] } = await fixture.client.listMultipartUploads({ Bucket: fixture.bucket });
  assert.deepEqual(uploads, []);
});

test('an upload to S3 leaves the object of another one that was killed before its manifest', async (t) => {
  const fixture = await s3Fixture(t);
  const request = await requestFor(fixture);
  const program = join(import.meta.dirname, 'killed-upload.ts');
  const args = [...process.execArgv.filter((argument) => !argument.startsWith('--test')), program];
  const step = { task: 'CompleteMultipartUpload', count: 1 };
  const entry = fixture.entry();
  const settings = JSON.stringify({ entry, request: { ...request, builtAt: undefined }, step });
  const child = spawn(process.execPath, [...args, settings], { stdio: ['ignore', 'inherit', 'inherit'] });
  await once(child, 'exit');
  const provider = fixture.open({}, ['raw']);
  await provider.upload({ ...request, uploadId: 'u2' });
  await provider.discard(request.uploadId);
  assert.deepEqual(
    (await provider.list()).map(({ uploadId }) => uploadId),
    ['u2'],
  );
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
  await assert.rejects(provider.delete(Key), { code: 'provider-refused' });
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
