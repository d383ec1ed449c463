import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  answersWith,
  cutsAfter,
  type Fault,
  pausesAfter,
} from '../../../test/fixtures/fault-proxy/faults.ts';
import { waitUntil } from '../../../test/fixtures/wait-until.ts';
import { sharedImageId } from '../src/upload/shared-upload.ts';
import { openProvider, uploadRequest } from './provider-fixture.ts';
import { openRealCloud, type RealCloud } from './real-cloud.ts';

const PUT_FILE = { method: 'PUT', path: /\/file$/ };
/** An image that gets no data counts as left behind at once; one that does, never. */
const HASTY = { empty: 0, storing: 60 };

describe('an upload that several processes are at', () => {
  test('is made once, by whoever comes first, and all get the same image', async (t) => {
    const cloud = await openRealCloud(t);
    const request = { ...(await uploadRequest(t)), shared: true };
    const uploads = [1, 2, 3].map(() => openProvider(t, cloud.settings).upload(request));
    const ids = (await Promise.all(uploads)).map(({ externalId }) => externalId);
    assert.equal(new Set(ids).size, 1);
    assert.equal(putsOf(cloud), 1);
    assert.deepEqual(await idsIn(cloud), [ids[0]]);
    assert.deepEqual(await openProvider(t, cloud.settings).upload(request), { externalId: ids[0] });
    assert.equal(putsOf(cloud), 1);
  });

  test('is waited for while data flows, by one whose file differs, too', async (t) => {
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

  test('is begun anew when who began it is gone, under an id that was never used', async (t) => {
    const cloud = await openRealCloud(t);
    const request = { ...(await uploadRequest(t)), shared: true };
    const { projectId } = await cloud.account.issueToken();
    const left = { id: sharedImageId(`${projectId}/u1`, 0), disk_format: 'qcow2', container_format: 'bare' };
    await (await cloud.account.glance()).request('POST', '/images', left);
    const { promise: told, resolve: tell } = Promise.withResolvers<void>();
    cloud.glance.inject({ method: 'DELETE' }, answersOnce(told));
    const patient = openProvider(t, cloud.settings).upload(request);
    await waitUntil('a look of the patient one', () => looksAfterConflict(cloud) > 0);
    const hasty = openProvider(t, cloud.settings, { standstill: HASTY }).upload(request);
    // The hasty one would take the new image for left behind, too, were it to see it without data.
    await waitUntil('data under another id', async () =>
      (await cloud.images()).some(({ id, status }) => id !== left.id && status !== 'queued'),
    );
    tell();
    const [one, other] = await Promise.all([patient, hasty]);
    assert.deepEqual(one, other);
    assert.notEqual(one.externalId, left.id);
    assert.deepEqual(await idsIn(cloud), [one.externalId]);
  });

  test('that fails in one process leaves nothing, and another one takes it over', async (t) => {
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

  test('is tried again after a fault, and after its image was deleted', async (t) => {
    const cloud = await openRealCloud(t);
    const request = { ...(await uploadRequest(t)), shared: true };
    const provider = openProvider(t, cloud.settings);
    cloud.glance.inject(PUT_FILE, cutsAfter(1_000_000));
    cloud.glance.inject(PUT_FILE, answersWith(503));
    const { externalId } = await provider.upload(request);
    assert.deepEqual(await idsIn(cloud), [externalId]);
    await provider.delete(externalId);
    const again = await provider.upload(request);
    assert.notEqual(again.externalId, externalId);
    assert.deepEqual(await idsIn(cloud), [again.externalId]);
  });
});

/** The service does what it was asked for; the client hears of it when `told` has resolved. */
function answersOnce(told: Promise<void>): Fault {
  return async (exchange) => {
    const { statusCode = 502 } = (await exchange.fetchAnswer()).resume();
    await told;
    await exchange.answer(statusCode, {}, '');
  };
}

async function idsIn(cloud: RealCloud): Promise<string[]> {
  return (await cloud.images()).map(({ id }) => id);
}

function putsOf({ glance }: RealCloud): number {
  return glance.requests.filter(({ method }) => method === 'PUT').length;
}

/** How often an image was asked for since the second attempt to make it. */
function looksAfterConflict({ glance }: RealCloud): number {
  const second = glance.requests.findLastIndex(({ method }) => method === 'POST');
  return glance.requests
    .slice(second)
    .filter(({ method, path }) => method === 'GET' && /images\/[^?]/.test(path)).length;
}
