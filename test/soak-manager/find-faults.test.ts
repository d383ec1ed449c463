// Only in test:all: it tests a soak.
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Admin, Client, Worker } from '@nodepool-builder/gearman-node';
import { startGearmand } from '../fixtures/gearmand.ts';
import { waitUntil } from '../fixtures/wait-until.ts';
import { CloudDouble } from './cloud-double.ts';
import { findFaults } from './find-faults.ts';

/** Starts a gearmand with a job, and returns the differences that the soak finds. */
async function queueWithJob(t: TestContext) {
  const gearmand = await startGearmand();
  t.after(() => gearmand.stop());
  const cloud = await CloudDouble.start(0);
  t.after(() => cloud.stop());
  const address = { host: '127.0.0.1', port: gearmand.port };
  const client = new Client({ servers: [address] });
  t.after(() => client.close());
  const admin = new Admin(address);
  t.after(() => admin.close());
  const job = client.submit('image-delete:a', '', { unique: 'key' });
  job.result.catch(() => {}); // rejects if its client has left
  const handle = await job.handle;
  const settings = {
    port: gearmand.port,
    cloud: cloud.url,
    store: '',
    diskimages: 0,
    providers: 0,
    generation: 1,
    faultRate: 0,
  };
  const scene = {
    settings,
    state: { builds: new Map(), uploads: new Map(), pauses: new Map() },
    cloud,
    directories: [],
  };
  return { address, client, admin, handle, faults: () => findFaults(scene) };
}

const FAULT = ['gearmand: 1 jobs of image-delete:a are left'];

test('a queued job with a waiting client is reported by the soak test', async (t) => {
  const { faults } = await queueWithJob(t);
  assert.deepEqual(await faults(), FAULT);
});

test('a killed manager’s queued job is not reported, as gearmand lists it but assigns it to no builder', async (t) => {
  const { address, client, admin, faults } = await queueWithJob(t);
  await client.close();
  await waitUntil('gearmand to ignore the job', async () => (await admin.showJobs())[0]?.ignored);
  assert.deepEqual(await faults(), []);
  let given = 0;
  const worker = new Worker({ servers: [address] });
  t.after(() => worker.close());
  worker.add('image-delete:a', () => {
    given += 1;
    return '';
  });
  await waitUntil('gearmand to forget the job', async () => (await admin.showJobs()).length === 0);
  assert.equal(given, 0);
});

test('a withdrawn job is not reported, as gearmand lists it until a builder offers its function', async (t) => {
  const { admin, handle, faults } = await queueWithJob(t);
  await admin.cancelJob(handle);
  assert.deepEqual(
    (await admin.status()).map(({ name, total }) => [name, total]),
    [['image-delete:a', 1]],
  );
  assert.deepEqual(await faults(), []);
});

test('a running job is reported by the soak test, even without a client', async (t) => {
  const { address, client, admin, faults } = await queueWithJob(t);
  const begun = Promise.withResolvers<void>();
  const end = Promise.withResolvers<string>();
  const worker = new Worker({ servers: [address] });
  t.after(() => worker.close());
  worker.add('image-delete:a', () => {
    begun.resolve();
    return end.promise;
  });
  await begun.promise;
  await client.close();
  await waitUntil('gearmand to ignore the job', async () => (await admin.showJobs())[0]?.ignored);
  assert.deepEqual(await faults(), FAULT);
  end.resolve('');
  await waitUntil('the end of the job', async () => (await faults()).length === 0);
});
