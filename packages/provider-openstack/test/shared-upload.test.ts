// Only in test:all: it has further variants of an upload.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  cutsAfter,
  type Fault,
  pausesAfter,
  respondsWith,
} from '../../../test/fixtures/fault-proxy/faults.ts';
import { waitUntil } from '../../../test/fixtures/wait-until.ts';
import { sharedImageId } from '../src/upload/shared-upload.ts';
import { openProvider, uploadRequest } from './provider-fixture.ts';
import { openRealCloud, type RealCloud } from './real-cloud.ts';

const PUT_FILE = { method: 'PUT', path: /\/file$/ };
/** An image without data counts as interrupted at once; an image with data, never. */
const HASTY = { empty: 0, storing: 60 };

describe('an upload by several processes', () => {
  test('a shared upload creates one image in Glance, and all processes get its id', async (t) => {
    const cloud = await openRealCloud(t);
    const request = { ...(await uploadRequest(t)), shared: true };
    const uploads = [1, 2, 3].map(() => openProvider(t, cloud.settings).upload(request));
    const ids = (await Promise.all(uploads)).map(({ externalId }) => externalId);
    assert.equal(new Set(ids).size, 1);
    assert.equal(putsOf(cloud), 1);
    assert.deepEqual(await idsIn(cloud), [ids[0]]);
    assert.equal((await openProvider(t, cloud.settings).upload(request)).externalId, ids[0]);
    assert.equal(putsOf(cloud), 1);
  });

  test('a shared upload is awaited while data is sent, even by a process with another file', async (t) => {
    const cloud = await openRealCloud(t);
    const request = { ...(await uploadRequest(t)), shared: true };
    const { promise: open, resolve } = Promise.withResolvers<void>();
    cloud.glance.inject(PUT_FILE, pausesAfter(1_000_000, open));
    const first = openProvider(t, cloud.settings).upload(request);
    await waitUntil('data at the cloud', async () => (await cloud.images())[0]?.status === 'saving');
    const { file } = await uploadRequest(t);
    const second = openProvider(t, cloud.settings, { standstill: HASTY }).upload({ ...request, file });
    await waitUntil('a look of the second', () => looksAfterConflict(cloud) > 2);
    resolve();
    assert.deepEqual(await second, await first);
    assert.equal((await cloud.images())[0]?.checksum, request.file.checksums?.md5);
    assert.equal(putsOf(cloud), 1);
  });

  test('a shared upload starts over with a new id after its process died', async (t) => {
    const cloud = await openRealCloud(t);
    const request = { ...(await uploadRequest(t)), shared: true };
    const { projectId } = await cloud.account.issueToken();
    const left = { id: sharedImageId(`${projectId}/u1`, 0), disk_format: 'qcow2', container_format: 'bare' };
    await (await cloud.account.glance()).request('POST', '/images', left);
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
    cloud.glance.inject({ method: 'DELETE' }, respondsOnce(answered));
    const patient = openProvider(t, cloud.settings).upload(request);
    await waitUntil('a look of the patient one', () => looksAfterConflict(cloud) > 0);
    const hasty = openProvider(t, cloud.settings, { standstill: HASTY }).upload(request);
    // With these limits, `hasty` would also delete the new image if it saw it without data.
    await waitUntil('data under another id', async () =>
      (await cloud.images()).some(({ id, status }) => id !== left.id && status !== 'queued'),
    );
    answer();
    const [one, other] = await Promise.all([patient, hasty]);
    assert.deepEqual(one, other);
    assert.notEqual(one.externalId, left.id);
    assert.deepEqual(await idsIn(cloud), [one.externalId]);
  });

  test('a shared upload that fails in one process is cleaned up, and another process takes over', async (t) => {
    const cloud = await openRealCloud(t);
    const request = { ...(await uploadRequest(t)), shared: true };
    const { promise: open, resolve } = Promise.withResolvers<void>();
    cloud.glance.inject(PUT_FILE, pausesAfter(1_000_000, open));
    const stop = new AbortController();
    const first = openProvider(t, cloud.settings).upload(request, { signal: stop.signal });
    await waitUntil('data at the cloud', async () => (await cloud.images())[0]?.status === 'saving');
    const second = openProvider(t, cloud.settings).upload(request);
    await waitUntil('a look of the second', () => looksAfterConflict(cloud) > 1);
    stop.abort();
    await assert.rejects(first);
    resolve();
    const { externalId } = await second;
    assert.deepEqual(await idsIn(cloud), [externalId]);
  });

  test('a shared upload is retried after an error, and after its image was deleted', async (t) => {
    const cloud = await openRealCloud(t);
    const request = { ...(await uploadRequest(t)), shared: true };
    const provider = openProvider(t, cloud.settings);
    cloud.glance.inject(PUT_FILE, cutsAfter(1_000_000));
    cloud.glance.inject(PUT_FILE, respondsWith(503));
    const { externalId } = await provider.upload(request);
    assert.deepEqual(await idsIn(cloud), [externalId]);
    await provider.delete(externalId);
    const again = await provider.upload(request);
    assert.notEqual(again.externalId, externalId);
    assert.deepEqual(await idsIn(cloud), [again.externalId]);
  });
});

/** The service handles the request; the client gets the response once `answered` has resolved. */
function respondsOnce(answered: Promise<void>): Fault {
  return async (exchange) => {
    const { statusCode = 502 } = (await exchange.fetchResponse()).resume();
    await answered;
    await exchange.respond(statusCode, {}, '');
  };
}

async function idsIn(cloud: RealCloud): Promise<string[]> {
  return (await cloud.images()).map(({ id }) => id);
}

function putsOf({ glance }: RealCloud): number {
  return glance.requests.filter(({ method }) => method === 'PUT').length;
}

/** Returns the number of GET requests for an image since the second attempt to create it. */
function looksAfterConflict({ glance }: RealCloud): number {
  const second = glance.requests.findLastIndex(({ method }) => method === 'POST');
  return glance.requests
    .slice(second)
    .filter(({ method, path }) => method === 'GET' && /images\/[^?]/.test(path)).length;
}
