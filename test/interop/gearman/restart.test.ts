import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type Gearmand, startGearmand } from '../../fixtures/gearmand.ts';
import { waitUntil } from '../../fixtures/wait-until.ts';
import { held, type Site, site } from './site.ts';

async function gearmandSite(t: TestContext): Promise<Site & { gearmand: Gearmand }> {
  const gearmand = await startGearmand();
  t.after(() => gearmand.stop());
  return { ...site(t, gearmand.port), gearmand };
}

test('functions are registered again and jobs run after gearmand was killed and restarted', async (t) => {
  const { gearmand, admin, client, worker } = await gearmandSite(t);
  const able = worker();
  able.setFunctions({ f: () => 'f', g: () => 'g' });
  assert.equal(String(await client.submit('f')), 'f');
  for (let times = 0; times < 3; times += 1) {
    await gearmand.restart();
    const names = await waitUntil('both functions', async () => {
      const functions = await admin.status().catch(() => []);
      return functions.length === 2 && functions.map(({ name }) => name).toSorted();
    });
    assert.deepEqual(names, ['f', 'g']);
    assert.equal(String(await client.submit('g')), 'g');
  }
});

test('functions declared while gearmand is down are registered when it returns', async (t) => {
  const { gearmand, admin, client, worker } = await gearmandSite(t);
  const able = worker();
  able.setFunctions({ f: () => 'f', g: () => 'g' });
  assert.equal(String(await client.submit('f')), 'f');
  await gearmand.kill();
  able.setFunctions({ g: () => 'g', h: () => 'h' });
  await gearmand.restart();
  assert.equal(String(await client.submit('h')), 'h');
  assert.deepEqual((await admin.status()).map(({ name }) => name).toSorted(), ['g', 'h']);
});

test('a job that ran when gearmand was killed is notified, and its slot serves the next job', async (t) => {
  const { gearmand, client, worker } = await gearmandSite(t);
  const { handler, started } = held();
  const lost = Promise.withResolvers<void>();
  const able = worker();
  able.add('long', (job) => {
    job.connectionLost.addEventListener('abort', () => lost.resolve());
    return Promise.race([handler(), lost.promise]);
  });
  able.add('next', () => 'served');
  const job = client.submit('long');
  await started;
  await gearmand.kill();
  await assert.rejects(job.result, { code: 'job-lost' });
  await lost.promise;
  await gearmand.restart();
  assert.equal(String(await client.submit('next')), 'served');
});

test('a lost job is resubmitted when gearmand returns', async (t) => {
  const { gearmand, client, worker } = await gearmandSite(t);
  const job = client.submit('f', 'payload', { onServerLost: 'resubmit' });
  await job.handle;
  await gearmand.restart();
  worker().add('f', ({ payload }) => payload);
  assert.equal(String(await job), 'payload');
});

test('closing a worker and a client works while gearmand is down', async (t) => {
  const { gearmand, client, worker } = await gearmandSite(t);
  const able = worker();
  able.add('f', () => 'f');
  assert.equal(String(await client.submit('f')), 'f');
  await gearmand.kill();
  await Promise.all([able.close(), client.close()]);
});
