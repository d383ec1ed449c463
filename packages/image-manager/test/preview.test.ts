import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listUnrecordedImages, type PreviewOptions, previewPlan } from '@nodepool-builder/image-manager';
import { waitUntil } from '../../../test/fixtures/wait-until.ts';
import { Hold } from './hold.ts';
import { ManagerSite } from './manager-site.ts';

test('a preview returns the plan and changes nothing', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  await waitUntil(
    'the builder to register',
    async () => (await previewPlan(optionsOf(site))).steps.length > 0,
  );
  const { steps } = await previewPlan(optionsOf(site));
  assert.deepEqual(steps, [{ kind: 'build', diskimage: 'debian', reason: 'its first ready build' }]);
  await site.store.ask({ kind: 'build', diskimage: 'debian' });
  const [requested] = (await previewPlan(optionsOf(site))).steps;
  assert.equal(requested?.reason, 'it was requested');
  assert.deepEqual(builder.jobs, []);
  assert.equal((await site.store.requests()).length, 1);
  assert.equal((await site.store.read()).nextNumber, 1);
});

test('a preview does not plan a build that is running', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const hold = new Hold();
  builder.beforeBuild = ({ signal }) => hold.wait(signal);
  site.manage();
  await hold.reached;
  assert.deepEqual((await previewPlan(optionsOf(site))).steps, []);
  hold.release();
});

test('a preview without a reply from the job server does not claim that no builder offers a build', async (t) => {
  const site = await ManagerSite.start(t);
  const { waits } = await previewPlan({ ...optionsOf(site), servers: [{ host: '127.0.0.1', port: 1 }] });
  assert.match(
    waits[0]?.reason ?? '',
    /^a job server does not reply, so no builder is known to offer image-build:debian; /,
  );
});

test('a preview lists unrecorded images, ours and other owners’, and deletes none', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const manager = site.manage();
  const imageId = await site.untilInUse();
  await manager.stop();
  const uploadId = `0000000099-${site.store.owner}`;
  site.provider('east').plant({ externalId: 'orphan', uploadId });
  site.provider('west').plant({ externalId: 'foreign' });
  builder.images.add(`debian-${uploadId}`).add('debian-1');
  builder.offer();
  const list = () => listUnrecordedImages(optionsOf(site), (name) => site.providers.get(name), t.signal);
  const unrecorded = await waitUntil('all four images', async () => {
    const found = await list();
    return found.length === 4 && found;
  });
  assert.deepEqual(
    unrecorded.map((image) => [
      image.location === 'provider' ? image.image.externalId : image.imageId,
      image.isOurs,
    ]),
    [
      ['orphan', true],
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
