import assert from 'node:assert/strict';
import { test } from 'node:test';
import { held, SERVERS } from './site.ts';

for (const [name, start] of Object.entries(SERVERS)) {
  test(`a job with a start time in the past runs at once on ${name}`, async (t) => {
    const { client, worker } = await start(t);
    const { promise: ran, resolve } = Promise.withResolvers<string>();
    worker().add('f', (job) => resolve(String(job.payload)));
    await client.submit('f', 'due', { background: true, startAt: new Date(1000) });
    assert.equal(await ran, 'due');
  });

  test(`a job with a start time in the future waits for it on ${name}`, async (t) => {
    const { client, admin } = await start(t);
    const job = client.submit('f', 'later', { background: true, startAt: new Date(Date.now() + 3_600_000) });
    assert.deepEqual(await client.status(await job.handle), {
      known: true,
      running: false,
      numerator: 0,
      denominator: 0,
    });
    assert.equal((await admin.status())[0]?.total, 1);
  });

  test(`a job is found by its unique key on ${name}`, async (t) => {
    const { client, worker } = await start(t);
    const { handler, started, end } = held();
    worker().add('f', handler);
    const job = client.submit('f', '', { unique: 'the key' });
    await started;
    assert.deepEqual(await client.statusByUnique('the key'), {
      known: true,
      running: true,
      numerator: 0,
      denominator: 0,
      clients: 1,
    });
    end('done');
    assert.equal(String(await job), 'done');
    assert.equal((await client.statusByUnique('the key')).known, false);
  });
}
