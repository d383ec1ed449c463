// Only in test:all: it kills an upload at each step.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { requestFor, s3Fixture } from './s3-fixture.ts';

/** Requests that change something. The uploading process is killed once after each of them. */
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

/** Steps after which a discard is also tried. */
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
