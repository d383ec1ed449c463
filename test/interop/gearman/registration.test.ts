import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { waitUntil } from '../../fixtures/wait-until.ts';
import { held, SERVERS, type Site } from './site.ts';

/** Returns the functions that at least one worker offers. */
async function offered({ admin }: Site): Promise<string[]> {
  const functions = await admin.status();
  return functions
    .filter(({ availableWorkers }) => availableWorkers > 0)
    .map(({ name }) => name)
    .toSorted();
}

for (const [server, start] of Object.entries(SERVERS)) {
  suite(`registration of functions with ${server}`, () => {
    test('the server lists exactly the functions that workers declared', async (t) => {
      const site = await start(t);
      const worker = site.worker();
      for (const names of [['a', 'b'], ['b', 'c'], [], ['a']]) {
        worker.setFunctions(new Map(names.map((name) => [name, () => {}])));
        await waitUntil(`only ${names.join()} to be offered`, async () => {
          const found = await offered(site);
          return found.join() === names.join();
        });
      }
      assert.equal((await site.admin.status()).find(({ name }) => name === 'a')?.availableWorkers, 1);
    });

    test('thousands of functions are deregistered as fast as they were registered', async (t) => {
      const site = await start(t);
      const worker = site.worker();
      worker.setFunctions(new Map(Array.from({ length: 4000 }, (_, index) => [`f${index}`, () => {}])));
      worker.add('stays', () => 'done');
      await waitUntil('all to be offered', async () => (await offered(site)).length === 4001);
      worker.setFunctions({ stays: () => 'done' });
      await waitUntil('a single function', async () => (await offered(site)).join() === 'stays');
      assert.equal(String(await site.client.submit('stays')), 'done');
    });

    test('a function added while the worker sleeps gets the waiting job', async (t) => {
      const { client, worker } = await start(t);
      const able = worker();
      able.add('f', () => 'done');
      await client.submit('f');
      await able.registered(); // confirmed after an unsuccessful grab
      const job = client.submit('g');
      await job.handle;
      able.add('g', () => 'done at last');
      assert.equal(String(await job), 'done at last');
    });

    test('removing a running job’s function does not interrupt the job', async (t) => {
      const site = await start(t);
      const { handler, started, end } = held();
      const worker = site.worker();
      worker.add('f', handler);
      const job = site.client.submit('f');
      await started;
      worker.setFunctions({ g: () => 'done' });
      await waitUntil('g to be offered', async () => (await offered(site)).includes('g'));

      // Otherwise another worker for the function would get the job now.
      const other = site.worker();
      other.add('f', () => assert.fail('the job ran twice'));
      other.add('last', () => 'the other is there');
      assert.equal(String(await site.client.submit('last')), 'the other is there');
      assert.equal((await site.admin.showJobs()).length, 1);

      end('once');
      assert.equal(String(await job), 'once');
      await other.close();
      await waitUntil('f to disappear', async () => (await offered(site)).join() === 'g');
      assert.equal(String(await site.client.submit('g')), 'done');
    });

    test('a job assigned while its function is being removed runs once', async (t) => {
      const site = await start(t);
      const worker = site.worker();
      let runs = 0;
      const handler = () => {
        runs += 1;
        return 'done';
      };
      const rounds = 30;
      for (let round = 0; round < rounds; round += 1) {
        worker.add('f', handler);
        const job = site.client.submit('f');
        await job.handle;
        worker.remove('f'); // about when the server assigns the job
        worker.add('f', handler); // the server has not put the job back, which waits
        assert.equal(String(await job), 'done');
        worker.remove('f');
      }
      assert.equal(runs, rounds);
    });

    test('a disconnected worker’s job runs on another worker', async (t) => {
      const site = await start(t);
      const job = site.client.submit('f', 'payload');
      const lost = await site.connect();
      lost.send('CAN_DO', 'f');
      await job.handle;
      assert.deepEqual((await lost.ask('GRAB_JOB_UNIQ')).slice(0, 2), ['JOB_ASSIGN_UNIQ', await job.handle]);
      lost.socket.resetAndDestroy();
      site.worker().add('f', (again) => `${again.payload.toString()} again`);
      assert.equal(String(await job), 'payload again');
    });

    test('closing a worker waits for the running job and leaves waiting jobs to other workers', async (t) => {
      const site = await start(t);
      const { handler, started, end } = held();
      const worker = site.worker();
      worker.add('f', handler);
      const [first, second] = [site.client.submit('f'), site.client.submit('f')];
      await started;
      const closing = worker.close();
      end('done');
      assert.equal(String(await first), 'done');
      await closing;
      site.worker().add('f', () => 'by another');
      assert.equal(String(await second), 'by another');
    });
  });
}
