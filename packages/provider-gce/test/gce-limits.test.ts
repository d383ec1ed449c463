// Only in test:all: it waits for many limits.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { CloudError, RetryPolicy } from '@nodepool-builder/image-builder/plugin';
import { GoogleError } from '../../../test/doubles/gce/model.ts';
import { GceSession } from '../src/gce-session.ts';
import { gceFixture, requestFor } from './gce-fixture.ts';

const MIB = 2 ** 20;

test('any metadata fits into Compute Engine’s labels and description', async (t) => {
  const fixture = await gceFixture(t);
  const many = Object.fromEntries(Array.from({ length: 80 }, (_, index) => [`key${index}`, 'value']));
  const metadata = { '1st': 'Ä', '': 'empty', notes: 'x'.repeat(3000), team: 'ci', ...many };
  const provider = fixture.open();
  await provider.upload(await requestFor(fixture, { metadata }));
  const [candidate] = await provider.findImages({});
  assert.equal(candidate?.properties.team, 'ci');
  assert.equal(candidate?.properties['1st'], 'Ä');
  assert.equal((await provider.list()).length, 1);
});

test('an image name that is taken in Compute Engine gets a suffix', async (t) => {
  const fixture = await gceFixture(t);
  const resource = { name: 'debian-debian-0000000001', creationTimestamp: '2026-05-01T00:00:00Z' };
  fixture.double.images.push({
    project: 'ci-project',
    resource,
    status: 'READY',
    pendingReads: 0,
    isDeleted: false,
  });
  const provider = fixture.open();
  const { externalId } = await provider.upload(await requestFor(fixture));
  assert.match(externalId, /^debian-debian-0000000001-[0-9a-f]{8}$/);
  await provider.delete(externalId);
  assert.deepEqual(
    fixture.double.images.map((image) => image.resource.name),
    ['debian-debian-0000000001'],
  );
});

test('a list from Compute Engine contains all pages', async (t) => {
  const fixture = await gceFixture(t);
  fixture.double.pageSize = 2;
  const provider = fixture.open();
  const request = await requestFor(fixture);
  for (const number of [1, 2, 3, 4, 5]) {
    await provider.upload({ ...request, uploadId: `u${number}`, imageId: `debian-000000000${number}` });
  }
  assert.equal((await provider.list()).length, 5);
  assert.equal((await provider.findImages({})).length, 5);
});

test('a Compute Engine import whose image disappears fails at once', async (t) => {
  const fixture = await gceFixture(t, { pendingReads: 3 });
  const { double } = fixture;
  double.fault = ({ operation }) => {
    if (operation === 'Images.Get') double.images.length = 0;
    return undefined;
  };
  await assert.rejects(fixture.open().upload(await requestFor(fixture)), /it is gone/);
});

test('a deletion that Compute Engine gives up fails with its reason', async (t) => {
  const fixture = await gceFixture(t);
  const provider = fixture.open();
  const { externalId } = await provider.upload(await requestFor(fixture));
  fixture.double.deleteError = { code: 'RESOURCE_NOT_READY', message: 'The resource is busy.' };
  await assert.rejects(provider.delete(externalId), /The resource is busy\. \(RESOURCE_NOT_READY\)/);
  fixture.double.deleteError = undefined;
  await provider.delete(externalId);
  assert.deepEqual(fixture.double.images, []);
});

test('an abort ends the wait for Compute Engine’s response', async (t) => {
  const fixture = await gceFixture(t);
  const session = new GceSession({ name: 'ci', project: 'ci-project', endpoint: fixture.double.endpoint });
  t.after(() => session.close());
  const aborting = new AbortController();
  const never = session.call('Never', aborting.signal, async () => {
    aborting.abort(new Error('enough'));
    await new Promise(() => {});
  });
  await assert.rejects(never, /enough/);
});

test('a request to a silent Compute Engine ends at its time limit', async (t) => {
  const fixture = await gceFixture(t);
  const provider = fixture.open({}, { timeLimit: 50 });
  assert.deepEqual(await provider.list(), []);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  fixture.double.fault = () => {
    t.mock.timers.tick(50_000);
    return 'silent';
  };
  await assert.rejects(provider.list(), (error) => {
    assert.ok(error instanceof CloudError);
    assert.deepEqual([error.code, error.retriable], ['connection-failed', true]);
    assert.match(error.message, /^provider ci: ListImages: no response within 50 s$/);
    return true;
  });
});

test('a request to Compute Engine is sent as often as the retry policy says', async (t) => {
  const fixture = await gceFixture(t);
  const { double } = fixture;
  const retries = new RetryPolicy({ attempts: 3, firstDelay: 0, maxDelay: 0, maxRetryAfter: 0 });
  double.fault = () => new GoogleError(503, 'backendError', 'Try again.');
  await assert.rejects(fixture.open({}, { retries }).list(), { code: 'service-unavailable' });
  assert.equal(double.requests.length, 3);
});

test('an upload to Compute Engine that has taken ten minutes still resumes after a failure', async (t) => {
  const fixture = await gceFixture(t);
  const { file, ...request } = await requestFor(fixture);
  const bytes = randomBytes(20 * MIB);
  await writeFile(file.path, bytes);
  let puts = 0;
  fixture.double.fault = ({ operation }) => {
    if (!operation.startsWith('PUT ') || ++puts !== 2) return undefined;
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 700_000 });
    return new GoogleError(503, 'backendError', 'Try again.');
  };
  await fixture.open().upload({ ...request, file: { ...file, size: bytes.length } });
  assert.ok(puts > 2);
});

test('a disk that changes during the transfer to Compute Engine causes an error about the file', async (t) => {
  const fixture = await gceFixture(t);
  const { file, ...request } = await requestFor(fixture);
  // Exceeds the data that is read before the first part has arrived.
  const bytes = randomBytes(30 * MIB);
  await writeFile(file.path, bytes);
  fixture.double.fault = ({ operation }) => {
    if (operation.startsWith('PUT ')) writeFileSync(file.path, 'another content');
    return undefined;
  };
  const upload = fixture.open().upload({ ...request, file: { ...file, size: bytes.length } });
  await assert.rejects(upload, { code: 'image-changed' });
});

test('an error in the Google credentials file does not quote it', async (t) => {
  const fixture = await gceFixture(t);
  const directory = await mkdtemp(join(tmpdir(), 'gce-'));
  t.after(() => rm(directory, { recursive: true }));
  const credentialsFile = join(directory, 'key.json');
  await writeFile(credentialsFile, 'private_key: very-secret');
  const session = new GceSession({ name: 'ci', project: 'ci-project', credentialsFile });
  t.after(() => session.close());
  await assert.rejects(session.open(), (error) => {
    assert.ok(error instanceof CloudError);
    assert.equal(error.code, 'bad-request');
    assert.match(error.message, /key\.json" is not JSON/);
    assert.doesNotMatch(inspect(error), /secret/);
    return true;
  });
  await rm(credentialsFile);
  await assert.rejects(session.open(), /key\.json" cannot be read: ENOENT/);
  assert.equal(fixture.lines.length, 0);
});

test('a Compute Engine provider without a bucket lists and discards images, and rejects uploads', async (t) => {
  const fixture = await gceFixture(t);
  const provider = fixture.open({ 'bucket-name': undefined as never });
  assert.deepEqual(await provider.list(), []);
  await provider.discard('u1');
  await assert.rejects(provider.upload(await requestFor(fixture)), /needs the key bucket-name/);
});
