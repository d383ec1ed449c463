import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listStrayImages, type PreviewOptions, previewPlan } from '@nodepool-builder/image-manager';
import { waitUntil } from '../../../test/fixtures/wait-until.ts';
import { Hold } from './hold.ts';
import { ManagerSite } from './manager-site.ts';

test('a preview says what would be done, and does nothing', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  await waitUntil(
    'the builder to register',
    async () => (await previewPlan(optionsOf(site))).steps.length > 0,
  );
  const { steps } = await previewPlan(optionsOf(site));
  assert.deepEqual(steps, [{ act: 'build', diskimage: 'debian', reason: 'there is no ready build of it' }]);
  await site.store.ask({ kind: 'build', diskimage: 'debian' });
  const [demanded] = (await previewPlan(optionsOf(site))).steps;
  assert.equal(demanded?.reason, 'somebody asked for it');
  assert.deepEqual(builder.jobs, []);
  assert.equal((await site.store.requests()).length, 1);
  assert.equal((await site.store.read()).nextNumber, 1);
});

test('what is being built is no step, while a manager runs', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const hold = new Hold();
  builder.beforeBuild = ({ signal }) => hold.wait(signal);
  site.manage();
  await hold.reached;
  assert.deepEqual((await previewPlan(optionsOf(site))).steps, []);
  hold.release();
});

test('stray images are listed, ours and others’, and all of them stay', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const manager = site.manage();
  const imageId = await site.untilInUse();
  await manager.stop();
  const uploadId = `0000000099-${site.store.owner}`;
  site.provider('east').plant({ externalId: 'leak', uploadId });
  site.provider('west').plant({ externalId: 'foreign' });
  builder.images.add(`debian-${uploadId}`).add('debian-1');
  builder.offer();
  const list = () => listStrayImages(optionsOf(site), (name) => site.providers.get(name), t.signal);
  const strays = await waitUntil('all four', async () => {
    const found = await list();
    return found.length === 4 && found;
  });
  assert.deepEqual(
    strays.map((stray) => [
      stray.place === 'provider' ? stray.image.externalId : stray.imageId,
      stray.isOurs,
    ]),
    [
      ['leak', true],
      ['foreign', false],
      [`debian-${uploadId}`, true],
      ['debian-1', false],
    ],
  );
  await list();
  assert.deepEqual([...builder.images], [imageId, `debian-${uploadId}`, 'debian-1']);
  assert.deepEqual(
    [...site.providers.values()].map(({ images }) => images.size),
    [2, 2],
  );
});

function optionsOf({ configuration, store, ports, log }: ManagerSite): PreviewOptions {
  return {
    configuration,
    store,
    servers: ports.map((port) => ({ host: '127.0.0.1', port })),
    logger: log,
  };
}
