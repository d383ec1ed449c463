// Not a unit test: it starts servers.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { respondsWith } from '../../../test/fixtures/fault-proxy/faults.ts';
import { failsWith } from './fixtures/fails-with.ts';
import { openProvider, uploadRequest } from './provider-fixture.ts';
import { openRealCloud } from './real-cloud.ts';

test('an upload reports the cloud’s digests, and a download has the same bytes', async (t) => {
  const { settings } = await openRealCloud(t);
  const provider = openProvider(t, settings);
  const request = await uploadRequest(t);
  const { externalId, reported } = await provider.upload(request);
  const bytes = await readFile(request.file.path);
  assert.deepEqual(reported, {
    md5: createHash('md5').update(bytes).digest('hex'),
    sha512: createHash('sha512').update(bytes).digest('hex'),
  });
  const copy = `${request.file.path}.copy`;
  await provider.download(externalId, copy);
  assert.ok((await readFile(copy)).equals(bytes));
});

test('a download from Glance of a missing image, or of other bytes, leaves no file', async (t) => {
  const { settings, glance } = await openRealCloud(t);
  const provider = openProvider(t, settings);
  const request = await uploadRequest(t);
  const { externalId } = await provider.upload(request);
  const copy = `${request.file.path}.copy`;
  await assert.rejects(provider.download('1ca3c6d5-9b5b-4d4c-8a57-7f0d0a1b2c3d', copy), {
    code: 'image-not-found',
  });
  glance.inject({ method: 'GET', path: /\/file$/, times: 3 }, respondsWith(200, { body: 'other bytes' }));
  await assert.rejects(
    provider.download(externalId, copy),
    failsWith('checksum-mismatch', 'upload it again'),
  );
  for (const path of [copy, `${copy}.partial`]) assert.ok(!existsSync(path));
});
