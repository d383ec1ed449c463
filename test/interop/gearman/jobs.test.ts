import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Client, type WorkerJob, WorkFailError } from '@nodepool-builder/gearman-node';
import { held, SERVERS } from './site.ts';

for (const [server, start] of Object.entries(SERVERS)) {
  suite(`our client and worker over ${server}`, () => {
    test('payloads and results of any bytes and many sizes arrive unchanged', async (t) => {
      const { client, worker } = await start(t);
      worker().add('reverse', (job) => job.payload.toReversed());
      for (const size of [0, 1, 255, 4095, 4096, 65_535, 65_536, 3_000_000]) {
        const payload = Buffer.from(Uint8Array.from({ length: size }, (_, index) => index % 251));
        assert.deepEqual(
          await client.submit('reverse', payload),
          Buffer.from(payload.toReversed()),
          `${size}`,
        );
      }
    });

    test('function names may contain colons, spaces and UTF-8', async (t) => {
      const { client, worker } = await start(t);
      const names = ['image-build:debian-bookworm', 'a b', 'größe', 'x'.repeat(512)];
      worker().setFunctions(new Map(names.map((name) => [name, (job) => job.function])));
      for (const name of names) assert.equal(String(await client.submit(name)), name);
    });

    test('a job’s progress, data and warnings arrive in order', async (t) => {
      const { client, worker } = await start(t);
      worker().add('f', async (job) => {
        job.sendStatus(1, 3);
        await job.sendData('part\0');
        await job.sendWarning('careful');
        job.sendStatus(3, 3);
        return 'done';
      });
      const job = client.submit('f');
      const events: unknown[] = [];
      for await (const event of job) events.push(event);
      assert.deepEqual(events, [
        { type: 'status', numerator: 1, denominator: 3 },
        { type: 'data', data: Buffer.from('part\0') },
        { type: 'warning', data: Buffer.from('careful') },
        { type: 'status', numerator: 3, denominator: 3 },
      ]);
      assert.equal(String(await job), 'done');
    });

    test('a worker serves the next job after a failure and after an exception', async (t) => {
      const { client, worker } = await start(t);
      worker().setFunctions({
        fails: () => Promise.reject(new WorkFailError('no')),
        throws: () => Promise.reject(new Error('boom')),
        works: () => 'done',
      });
      await assert.rejects(client.submit('fails').result, { code: 'job-failed' });
      await assert.rejects(client.submit('throws').result, {
        code: 'job-exception',
        data: Buffer.from('boom'),
      });
      assert.equal(String(await client.submit('works')), 'done');
    });

    test('a failed job’s last warning is part of its error', async (t) => {
      const { client, worker } = await start(t);
      worker().setFunctions({ fails: warning(new WorkFailError('no')), throws: warning(new Error('boom')) });
      const last = Buffer.from('no space');
      await assert.rejects(client.submit('fails').result, { code: 'job-failed', warning: last });
      await assert.rejects(client.submit('throws').result, { code: 'job-exception', warning: last });
    });

    test('a background job runs after its client has disconnected', async (t) => {
      const { address, client, worker } = await start(t);
      const submitter = new Client({ servers: [address] });
      const handle = await submitter.submit('f', 'payload', { background: true }).handle;
      await submitter.close();
      assert.deepEqual(await client.status(handle), {
        known: true,
        running: false,
        numerator: 0,
        denominator: 0,
      });
      const ran = await new Promise<string>((resolve) => {
        worker().add('f', (job) => resolve(`${job.handle} ${job.payload.toString()}`));
      });
      assert.equal(ran, `${handle} payload`);
    });

    test('getStatus returns a running job’s status', async (t) => {
      const { client, worker } = await start(t);
      const { handler, started, end } = held();
      const able = worker();
      able.add('f', (job) => {
        job.sendStatus(1, 4);
        return handler();
      });
      const job = client.submit('f');
      await started;
      await able.registered(); // the server has also handled the WORK_STATUS
      assert.deepEqual(await client.status(await job.handle), {
        known: true,
        running: true,
        numerator: 1,
        denominator: 4,
      });
      end('done');
      await job;
      assert.equal((await client.status(await job.handle)).known, false);
    });

    test('jobs with high priority run first', async (t) => {
      const { client, worker } = await start(t);
      const order: string[] = [];
      const jobs = (['low', 'normal', 'high'] as const).map((priority) =>
        client.submit('f', priority, { priority }),
      );
      await Promise.all(jobs.map((job) => job.handle));
      worker().add('f', (job) => {
        order.push(job.payload.toString());
      });
      await Promise.all(jobs);
      assert.deepEqual(order, ['high', 'normal', 'low']);
    });

    test('jobs with the same unique key run once, and each client gets the result', async (t) => {
      const { client, worker } = await start(t);
      let runs = 0;
      const jobs = Array.from({ length: 3 }, () => client.submit('f', '', { unique: 'key' }));
      const handles = await Promise.all(jobs.map((job) => job.handle));
      assert.equal(new Set(handles).size, 1);
      worker().add('f', (job) => {
        runs += 1;
        return job.unique;
      });
      assert.deepEqual((await Promise.all(jobs)).map(String), ['key', 'key', 'key']);
      assert.equal(runs, 1);
    });

    test('many jobs over several workers get their own results', async (t) => {
      const { client, worker } = await start(t);
      for (let workers = 0; workers < 3; workers += 1) worker(4).add('echo', (job) => job.payload);
      const results = Array.from({ length: 1000 }, (_, index) => client.submit('echo', String(index)).result);
      assert.deepEqual((await Promise.all(results)).map(Number), [...results.keys()]);
    });
  });
}

/** Returns a handler that warns twice, and fails. */
function warning(error: Error) {
  return async (job: WorkerJob): Promise<void> => {
    await job.sendWarning('slow');
    await job.sendWarning('no space');
    throw error;
  };
}
