import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { waitUntil } from '../../fixtures/wait-until.ts';
import { SERVERS } from './site.ts';

for (const [server, start] of Object.entries(SERVERS)) {
  suite(`admin commands of ${server}`, () => {
    test('the admin commands status, workers and jobs list waiting and running jobs', async (t) => {
      const { admin, connect } = await start(t);
      assert.deepEqual(await admin.status(), []);
      const [client, worker] = [await connect(), await connect()];
      worker.send('SET_CLIENT_ID', 'me');
      worker.send('CAN_DO', 'f');
      await worker.ask('ECHO_REQ', '');
      for (const name of ['SUBMIT_JOB_HIGH', 'SUBMIT_JOB', 'SUBMIT_JOB_LOW_BG'] as const) {
        await client.ask(name, 'f', name, '');
      }
      const f = { name: 'f', availableWorkers: 1 };
      assert.deepEqual(await admin.status(), [{ ...f, total: 3, running: 0 }]);
      assert.deepEqual(await admin.priorityStatus(), [{ ...f, high: 1, normal: 1, low: 1 }]);
      const [, running] = await worker.ask('GRAB_JOB');
      assert.deepEqual(await admin.status(), [{ ...f, total: 3, running: 1 }]);
      assert.deepEqual(await admin.priorityStatus(), [{ ...f, high: 0, normal: 1, low: 1 }]);

      // gearmand may still list the connection that waited for it to start.
      const workers = await waitUntil('exactly the open connections to be listed', async () => {
        const found = await admin.workers();
        return found.length === 3 && found;
      });
      const { fd, ...mine } = workers.find(({ clientId }) => clientId === 'me') ?? { fd: -1 };
      assert.ok(fd > 0);
      assert.deepEqual(mine, { ip: '127.0.0.1', clientId: 'me', functions: ['f'] });

      const jobs = (await admin.showJobs()).toSorted((a, b) => a.handle.localeCompare(b.handle));
      assert.deepEqual(
        jobs.map(({ retries, ignored, background }) => ({ retries, ignored, background })),
        [false, false, true].map((background) => ({ retries: 0, ignored: false, background })),
      );
      assert.ok(jobs.some(({ handle }) => handle === running));
      assert.deepEqual((await admin.showUniqueJobs()).toSorted(), [
        'SUBMIT_JOB',
        'SUBMIT_JOB_HIGH',
        'SUBMIT_JOB_LOW_BG',
      ]);

      await worker.close();
      await waitUntil('the job to be put back', async () => {
        const job = (await admin.showJobs()).find(({ handle }) => handle === running);
        return job?.retries === 1;
      });
    });

    test('the admin commands return the version, log level and process id', async (t) => {
      const { admin, connect } = await start(t);
      assert.match(await admin.version(), /^\d+\.\d+\.\d+/);
      const peer = await connect();
      peer.sendBytes('version\n');
      assert.match((await peer.next()).join(' '), /^LINE OK \d+\.\d+\.\d+/);
      assert.equal(await admin.verbose(), 'ERROR');
      assert.ok((await admin.pid()) > 1);
    });

    test('a full queue rejects a job, and only that job', async (t) => {
      const { admin, client } = await start(t);
      await admin.createFunction('f'); // gearmand limits only known functions
      await admin.maxQueue('f', 1);
      const jobs = [client.submit('f'), client.submit('f'), client.submit('g')].map((job) => job.handle);
      const [first, second, third] = await Promise.allSettled(jobs);
      assert.deepEqual(
        [first?.status, second?.status, third?.status],
        ['fulfilled', 'rejected', 'fulfilled'],
      );
      await assert.rejects(client.submit('f').handle, { code: 'server-error', serverCode: 'QUEUE_ERROR' });
      await admin.maxQueue('f', 0);
      await client.submit('f').handle;
    });

    test('the admin commands create function and drop function work', async (t) => {
      const { admin, worker } = await start(t);
      await admin.createFunction('f');
      assert.deepEqual(await admin.status(), [{ name: 'f', total: 0, running: 0, availableWorkers: 0 }]);
      const able = worker();
      able.add('f', () => {});
      await new Promise<void>((resolve) => able.once('connect', () => resolve()));
      await able.registered();
      await assert.rejects(admin.dropFunction('f'), { code: 'server-error' });
      await able.close();
      await waitUntil(
        'the server to see that',
        async () => (await admin.status())[0]?.availableWorkers === 0,
      );
      await admin.dropFunction('f');
      assert.deepEqual(await admin.status(), []);
      await assert.rejects(admin.dropFunction('f'), { code: 'server-error' });
    });

    test('cancelling a waiting job notifies its client', async (t) => {
      const { admin, client } = await start(t);
      const job = client.submit('f');
      await admin.cancelJob(await job.handle);
      await assert.rejects(job.result, { code: 'job-failed' });
      await assert.rejects(admin.cancelJob('H:nowhere:1'), { serverCode: 'UNKNOWN_JOB' });
      await assert.rejects(admin.shutdown(), { serverCode: 'UNKNOWN_COMMAND' });
    });
  });
}
