import assert from 'node:assert/strict';
import { access, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { LaunchRequest } from '@nodepool-builder/image-builder';
import {
  changesResponse,
  cutsAfter,
  expiresToken,
  respondsWith,
} from '../../../../test/fixtures/fault-proxy/faults.ts';
import { OpenStackApi } from '../../../../test/fixtures/openstack/openstack-api.ts';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import { waitUntil } from '../../../../test/fixtures/wait-until.ts';
import { failsWith } from '../fixtures/fails-with.ts';
import { createImage, fails, openNovaCloud, PUBLIC_KEY, runThere } from './instance-cloud.ts';

const REQUEST: LaunchRequest = { buildId: 'debian-1', image: 'base', publicKey: PUBLIC_KEY, port: 22 };

test('a missing instance in Nova ends all waits, and its other resources are removed', async (t) => {
  const { nova, open } = await openNovaCloud(t);
  const provider = open();
  const instance = await provider.launch(REQUEST);
  const waits = [
    assert.rejects(
      instance.waitReachable(() => Promise.reject(new Error('not yet'))),
      fails('instance-failed', /does not exist/),
    ),
    assert.rejects(instance.waitStopped(), fails('instance-failed', /does not exist/)),
  ];
  await nova.servers.get(instance.id)?.remove();
  await Promise.all(waits);
  assert.equal(await instance.state(), 'failed');
  await nova.removeServers();
  await assert.rejects(instance.address(), fails('instance-failed', /does not exist/));
  const [left] = await provider.list();
  assert.equal(left?.buildId, 'debian-1');
  await left?.destroy();
  assert.deepEqual(await provider.list(), []);
});

test('an instance in Nova that cannot be removed causes an error and stays in the list', async (t) => {
  const { open, faults } = await openNovaCloud(t);
  const provider = open();
  const instance = await provider.launch(REQUEST);
  faults.inject({ method: 'DELETE', path: /\/servers\// }, respondsWith(204));
  const failed = { status: 'ERROR', fault: { code: 500, message: 'the host is on fire' } };
  faults.inject(
    { method: 'GET', path: /\/servers\/(?!detail)/ },
    changesResponse(({ server }) => ({ server: { ...(server as object), ...failed } })),
  );
  await assert.rejects(instance.destroy(), fails('cleanup-failed', /the host is on fire/));
  assert.equal((await provider.list()).length, 1);
  faults.inject({ method: 'DELETE', times: 3 }, respondsWith(500));
  await assert.rejects(instance.destroy(), fails('cleanup-failed', /500/));

  // The host does not respond, and the clock advances half a minute with each reading.
  faults.inject({ method: 'DELETE', path: /\/servers\// }, respondsWith(204));
  let clock = 0;
  t.mock.method(performance, 'now', () => (clock += 30_000));
  await assert.rejects(instance.destroy(), fails('cleanup-failed', /still exists 60 s after/));
  t.mock.restoreAll();
  await instance.destroy();
});

test('a captured image is downloaded from Glance completely, from its start after an error', async (t) => {
  const { nova, open, account, glance, images } = await openNovaCloud(t);
  await createImage(account, 'marked', {
    nodepool_image_name: 'base',
    'owner_specified.openstack.md5': 'of the base image',
    os_distro: 'debian',
  });
  const instance = await open().launch({ ...REQUEST, image: 'marked', port: nova.port });
  const mark = 'changed'.repeat(10_000);
  await runThere(await instance.address(), `echo ${mark} > /root/mark`);
  await instance.stop();
  const captured = await instance.capture({ imageId: 'debian-1' });
  const image = (await images()).find(({ id }) => id === captured.externalId);
  assert.equal(image?.nodepool_image_name, undefined);
  assert.equal(image?.['owner_specified.openstack.md5'], undefined);
  assert.equal(image?.os_distro, 'debian');

  const directory = await temporaryDirectory(t);
  const path = join(directory, 'captured');
  const file = { method: 'GET', path: /\/file$/ };
  for (const fault of [expiresToken(), respondsWith(503), cutsAfter(1)]) glance.inject(file, fault);
  await captured.save('raw', path);
  assert.deepEqual(JSON.parse(await readFile(path, 'utf8')), { '/root/mark': `${mark}\n` });

  glance.inject({ ...file, times: 3 }, respondsWith(200, { body: 'other bytes' }));
  await assert.rejects(captured.save('raw', path), failsWith('checksum-mismatch', '11 of 70019 bytes'));
  await assert.rejects(access(path), { code: 'ENOENT' });
  const requests = glance.requests.length;
  const nowhere = join(directory, 'absent', 'captured');
  await assert.rejects(captured.save('raw', nowhere), fails('directory-not-usable', /saving image/));
  assert.equal(glance.requests.length, requests);
  assert.deepEqual(captured.formats, ['raw']);
  await assert.rejects(captured.save('qcow2', path), fails('format-unavailable', /is raw/));
});

test('an incomplete captured image in Glance is removed', async (t) => {
  const { open, images, glance, faults, nova } = await openNovaCloud(t);
  const instance = await open().launch(REQUEST);
  await instance.stop();
  const before = (await images()).length;
  const capture = (signal?: AbortSignal): Promise<unknown> =>
    instance.capture({ imageId: 'debian-1' }, { ...(signal && { signal }) });
  const isIdle = (): boolean => nova.servers.get(instance.id)?.taskState === null;

  const shown = { method: 'GET', path: /\/images\/[^/?]+$/ };
  glance.inject(
    shown,
    changesResponse((image) => ({ ...image, status: 'killed' })),
  );
  await assert.rejects(capture(), fails('instance-failed', /went to killed/));
  await waitUntil('Nova to end', isIdle);
  glance.inject(shown, respondsWith(404));
  await assert.rejects(capture(), fails('instance-failed', /is gone/));
  await waitUntil('Nova to end', isIdle);
  const abort = new AbortController();
  const reason = new Error('enough');
  glance.inject(
    { ...shown, times: 100 },
    changesResponse((image) => {
      abort.abort(reason);
      return { ...image, status: 'queued' };
    }),
  );
  await assert.rejects(capture(abort.signal), reason);
  glance.clear();
  await waitUntil('Nova to end', isIdle);
  assert.equal((await images()).length, before);

  const busy = {
    conflictingRequest: { code: 409, message: 'Cannot createImage while it is in task_state image_snapshot' },
  };
  faults.inject({ method: 'POST', path: /\/action$/ }, respondsWith(409, { body: busy }));
  await assert.rejects(capture(), failsWith('conflict', 'image_snapshot'));
  faults.inject({ method: 'POST', path: /\/action$/ }, respondsWith(202));
  await assert.rejects(capture(), failsWith('invalid-response', 'Location'));
});

test('the image of a server that booted from a captured image does not count as captured', async (t) => {
  const { open, nova, account } = await openNovaCloud(t);
  const provider = open();
  const instance = await provider.launch(REQUEST);
  await instance.stop();
  const captured = await instance.capture({ imageId: 'debian-1' });
  const theirs = await open({ owner: 'user' }).launch({ ...REQUEST, image: captured.externalId ?? '' });
  const api = new OpenStackApi(`${nova.endpoint}/v2.1`, (await account.issueToken()).token);
  await api.request('POST', `/servers/${theirs.id}/action`, {
    createImage: { name: 'theirs', metadata: {} },
  });
  await waitUntil('the image', async () =>
    (await account.images()).some(({ name, status }) => name === 'theirs' && status === 'active'),
  );
  const ids = (await provider.captures()).map(({ externalId }) => externalId);
  assert.deepEqual(ids, [captured.externalId]);
  assert.deepEqual(await open({ owner: 'user' }).captures(), []);
});

test('a scope in Nova has its own instances and captured images, and without one all scopes’ are listed', async (t) => {
  const { open } = await openNovaCloud(t);
  const [one, other, all] = [open({ scope: 'one' }), open({ scope: 'other' }), open()];
  const instance = await one.launch(REQUEST);
  await other.launch(REQUEST);
  await instance.stop();
  const { externalId } = await instance.capture({ imageId: 'debian-1' });
  assert.deepEqual(
    (await one.list()).map(({ id }) => id),
    [instance.id],
  );
  assert.equal((await all.list()).length, 2);
  const found = await all.captures();
  assert.deepEqual(
    found.map((capture) => capture.externalId),
    [externalId],
  );
  assert.ok(Math.abs((found[0]?.capturedAt.getTime() ?? 0) - Date.now()) < 60_000);
  assert.deepEqual(await other.captures(), []);
  assert.deepEqual(await open({ owner: 'user' }).list(), []);
});

async function temporaryDirectory(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'captured-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  return directory;
}
