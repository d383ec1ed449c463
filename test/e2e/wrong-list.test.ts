// Only in test:all: it repeats one fault for each cloud.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { S3 } from '@aws-sdk/client-s3';
import { startBuilder } from '../fixtures/builder-process.ts';
import { startFaultProxy } from '../fixtures/fault-proxy/fault-proxy.ts';
import { respondsWith } from '../fixtures/fault-proxy/faults.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { createManagedSite, docsImage, endAfter, provider, spawnManager } from '../fixtures/managed-site.ts';
import { startS3Server } from '../fixtures/s3/s3-server.ts';
import { temporaryDirectory } from '../fixtures/temporary-directory.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

/** Requests for image lists by the provider `store`. */
const LIST = /[?&]list-type=2/;

const PAGE = { headers: { 'content-type': 'text/html' }, body: '<html><body>Please sign in.</body></html>' };

test('a proxy’s page in place of a list of images does not delete an image that is in use', async (t) => {
  const server = await startGearmand();
  undoAfter(t, () => server.stop());
  const s3 = await startS3Server();
  undoAfter(t, () => s3.stop());
  const proxy = await startFaultProxy(s3.endpoint);
  undoAfter(t, () => proxy.close());
  const client = new S3({ ...s3, forcePathStyle: true });
  undoAfter(t, async () => client.destroy());
  await client.createBucket({ Bucket: 'images' });
  const keys = async (): Promise<string[]> => {
    const { Contents: objects = [] } = await client.listObjectsV2({ Bucket: 'images' });
    return objects.map(({ Key = '' }) => Key).filter((key) => key.endsWith('.qcow2'));
  };

  const credentials = join(await temporaryDirectory(t), 'credentials');
  const { accessKeyId, secretAccessKey } = s3.credentials;
  await writeFile(
    credentials,
    `[default]\naws_access_key_id = ${accessKeyId}\naws_secret_access_key = ${secretAccessKey}\n`,
  );
  const store = provider('store', {
    type: 's3',
    endpoint: proxy.url,
    'region-name': s3.region,
    'bucket-name': 'images',
    'shared-credentials-file': credentials,
  });
  const { directory: _, ...entry } = store;
  const site = await createManagedSite(
    t,
    {
      manager: { store: 'state/manager.sqlite', 'orphan-scan-interval': 0.2 },
      diskimages: [docsImage({ name: 'docs' })],
      providers: [entry],
    },
    server.port,
  );
  endAfter(t, await startBuilder(site.config));
  const manager = spawnManager(t, site.config);
  await manager.logged(/upload \S+ of docs-\S+ to store is ready/);
  const before = await keys();
  assert.equal(before.length, 1);
  const lists = (): number => proxy.requests.filter(({ path }) => LIST.test(path)).length;
  const more = async (count: number): Promise<void> => {
    const seen = lists();
    await waitUntil(`${count} more lists`, () => lists() >= seen + count);
  };
  await more(3); // the upload was listed
  const pages = proxy.inject({ path: LIST, times: Number.POSITIVE_INFINITY }, respondsWith(200, PAGE));
  await waitUntil('four lists with a wrong page', () => pages.hits >= 4);
  await manager.logged(/cannot list provider store: .*ListObjectsV2: .*HTML/);
  proxy.clear();
  await more(4);
  assert.deepEqual(await keys(), before);
  const uploads = await site.list('image-list');
  assert.deepEqual(
    uploads.map(({ state, 'external-id': id }) => [state, id]),
    [['ready', before[0]]],
  );
});
