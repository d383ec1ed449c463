import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Worker } from '@nodepool-builder/gearman-node';
import { waitUntil } from '../../fixtures/wait-until.ts';
import { SERVERS } from './site.ts';

for (const [name, start] of Object.entries(SERVERS)) {
  test(`a worker with takesReducers gets jobs with and without a reducer from ${name}`, async (t) => {
    const { address, client } = await start(t);
    const worker = new Worker({ servers: [address], takesReducers: true });
    t.after(() => worker.close());
    worker.add('f', (job) => `${job.unique}|${job.reducer}|${job.payload.toString()}`);
    assert.equal(String(await client.submit('f', 'a\0b', { unique: 'key', reducer: 'r' })), 'key|r|a\0b');
    assert.equal(String(await client.submit('f', 'c', { unique: 'other' })), 'other||c');
  });

  test(`a worker without takesReducers gets the job without its reducer from ${name}`, async (t) => {
    const { client, worker } = await start(t);
    worker().add('f', (job) => `${job.reducer}|${job.payload.toString()}`);
    assert.equal(String(await client.submit('f', 'a', { reducer: 'r', aggregator: 'x' })), '|a');
  });

  test(`a function with a time limit is registered with ${name}`, async (t) => {
    const { client, admin, worker } = await start(t);
    const timed = worker();
    timed.add('f', { handler: (job) => job.payload, timeout: 60_000 });
    assert.equal(String(await client.submit('f', 'in time')), 'in time');
    timed.remove('f');
    // Not at once: a grab may be outstanding, and the server may assign another job before it replies.
    await waitUntil('the deregistration', async () => {
      const status = (await admin.status()).find(({ name: found }) => found === 'f');
      return (status?.availableWorkers ?? 0) === 0;
    });
  });
}
