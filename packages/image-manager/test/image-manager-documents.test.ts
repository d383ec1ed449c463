import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManagerSite } from './manager-site.ts';
import { BUILD_BUNDLE, bundle } from './store/records.ts';

/** The attestation of an upload. */
function uploadBundle(uploadId: string): string {
  return bundle('https://nodepool-builder.dev/upload/v1', { predicate: { 'upload-id': uploadId } });
}

test('a build’s documents are stored for as long as the build', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  builder.moreOf = ({ function: name, unique }) =>
    name.startsWith('image-build:')
      ? { attestations: [BUILD_BUNDLE], packages: 'H4sI' }
      : { attestations: [BUILD_BUNDLE, uploadBundle(unique)] };
  site.manage();
  const imageId = await site.untilInUse();
  const { uploads } = await site.store.read();
  assert.deepEqual(
    (await site.store.attestations(imageId)).map(({ uploadId, text }) => ({ uploadId, text })),
    [
      { uploadId: undefined, text: BUILD_BUNDLE },
      ...Array.from(uploads.keys(), (uploadId) => ({ uploadId, text: uploadBundle(uploadId) })).toSorted(
        (one, other) => (one.uploadId < other.uploadId ? -1 : 1),
      ),
    ],
  );
  assert.equal(await site.store.packages(imageId), 'H4sI');
  for (const job of builder.jobs) {
    if (!/^image-(?:build|upload):/.test(job.function)) continue;
    assert.equal((JSON.parse(job.payload) as { attestations: boolean }).attestations, true);
  }
  await site.store.ask({ kind: 'delete-build', imageId });
  await site.untilInUse(imageId);
  await site.until('the record to be pruned', ({ builds }) => !builds.has(imageId));
  assert.deepEqual(await site.store.documents(imageId), []);
});

test('a document that cannot be stored is logged, and its build and uploads become ready', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  builder.moreOf = () => ({ attestations: ['{}', BUILD_BUNDLE.padEnd(2 ** 20 + 1)], packages: 'none!' });
  site.manage();
  const imageId = await site.untilInUse();
  assert.deepEqual(await site.store.documents(imageId), []);
  await site.logged(/^warn .*build .*: attestation 1 that the builder returned is not stored: dsseEnvelope/);
  await site.logged(/attestation 2 that the builder returned is not stored: it has 1048577 bytes/);
});
