import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '../../../test/fixtures/wait-until.ts';
import { Hold } from './hold.ts';
import { ManagerSite } from './manager-site.ts';

test('a build keeps its id when the job server is lost during the build', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const hold = new Hold();
  builder.beforeBuild = ({ signal }) => hold.wait(signal);
  site.manage();
  await hold.reached;
  const [port = 0] = site.ports;
  await site.stopServer(port);
  await site.logged(/^warn job server .* does not respond/);
  hold.release();
  await waitUntil('the image', () => builder.images.size === 1);
  await site.restartServer(port);
  await site.logged(/^info job server .* responds again/);
  const imageId = await site.untilInUse();
  const { builds } = await site.store.read();
  assert.deepEqual([...builds.keys()], [imageId]);
  assert.equal(site.countLogged(/^warn job server .* does not respond/), 1);
});

test('an upload is resumed when the job server is lost during the upload', async (t) => {
  const site = await ManagerSite.start(t, { providers: ['east'] });
  const builder = await site.builder();
  const hold = new Hold();
  builder.beforeUpload = ({ signal }) => hold.wait(signal);
  site.manage();
  await hold.reached;
  const [port = 0] = site.ports;
  await site.stopServer(port);
  await site.restartServer(port);
  hold.release();
  await site.untilInUse();
  const { uploads } = await site.store.read();
  assert.equal(uploads.size, 1);
  assert.equal(site.provider('east').images.size, 1);
});

test('a job goes to the one of two job servers where a builder offers its function', async (t) => {
  const site = await ManagerSite.start(t, { servers: 2 });
  const [one = 0, other = 0] = site.ports;
  const builder = await site.builder([other]);
  const { manager } = site.manage();
  const first = await site.untilInUse();
  // The servers take turns, so two jobs would show a wrong choice.
  manager.reconfigure(site.withDebian({ digest: 'second' }));
  await site.untilInUse(first);
  assert.equal(builder.jobsOf('image-build').length, 2);
  assert.notEqual(one, other);
});

test('a manager with two job servers builds and uploads an image after it has lost one', async (t) => {
  const site = await ManagerSite.start(t, { servers: 2 });
  await site.builder();
  await site.stopServer(site.ports[0] ?? 0);
  site.manage();
  await site.untilInUse();
  assert.equal(site.countLogged(/^warn job server .* does not respond/), 1);
  assert.equal(site.countLogged(/^info job server .* responds again/), 0);
});

test('a manager that starts without a job server waits for it', async (t) => {
  const site = await ManagerSite.start(t);
  const [port = 0] = site.ports;
  await site.stopServer(port);
  site.manage();
  await site.logged(/^warn job server .* does not respond/);
  await site.restartServer(port);
  await site.builder();
  await site.untilInUse();
});

test('a manager that cannot read its store logs the error and tries again', async (t) => {
  const site = await ManagerSite.start(t);
  await site.builder();
  let failures = 0;
  const store = Object.create(site.store, {
    owner: { get: () => site.store.owner },
    lead: { value: (options: object) => site.store.lead(options) },
    requests: { value: () => site.store.requests() },
    read: {
      value: async () => {
        failures += 1;
        if (failures === 1) throw new Error('the disk is away');
        return await site.store.read();
      },
    },
  });
  site.manage(store);
  await site.untilInUse();
  assert.equal(site.countLogged(/^error the manager failed and restarts: the disk is away/), 1);
});
