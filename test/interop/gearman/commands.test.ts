import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { WorkFailError } from '@nodepool-builder/gearman-node';
import { waitUntil } from '../../fixtures/wait-until.ts';
import { run, startWorker } from './commands.ts';
import { SERVERS } from './site.ts';

for (const [server, start] of Object.entries(SERVERS)) {
  suite(`gearman and gearadmin with ${server}`, () => {
    test('the gearman command submits jobs to our worker', async (t) => {
      const { address, worker } = await start(t);
      const able = worker();
      able.setFunctions({
        reverse: (job) => job.payload.toReversed(),
        fails: () => Promise.reject(new WorkFailError('no')),
      });
      const { code, stdout } = await run('gearman', address.port, ['-f', 'reverse'], 'hello');
      assert.deepEqual([code, stdout], [0, 'olleh']);
      const large = 'x'.repeat(1_000_000);
      assert.equal((await run('gearman', address.port, ['-f', 'reverse'], large)).stdout, large);
      assert.notEqual((await run('gearman', address.port, ['-f', 'fails'], '')).code, 0);
    });

    test('the gearman command gets a job’s progress', async (t) => {
      const { address, worker } = await start(t);
      worker().add('f', async (job) => {
        job.sendStatus(1, 4);
        await job.sendData('part ');
        return 'end';
      });
      const { stdout } = await run('gearman', address.port, ['-f', 'f', '-s']);
      assert.match(stdout, /25% Complete\n/);
      assert.match(stdout, /part end/);
    });

    test('our client submits jobs to gearman -w', async (t) => {
      const { address, client } = await start(t);
      startWorker(t, address.port, 'count', 'wc', '-c');
      assert.equal(String(await client.submit('count', 'x'.repeat(100_000))).trim(), '100000');
      assert.equal(String(await client.submit('count', '')).trim(), '0');
    });

    test('the gearman command runs foreground and background jobs with gearman -w', async (t) => {
      const { address, admin } = await start(t);
      startWorker(t, address.port, 'upper', 'tr', 'a-z', 'A-Z');
      assert.equal((await run('gearman', address.port, ['-f', 'upper'], 'hello')).stdout, 'HELLO');
      for (const priority of [[], ['-I'], ['-L']]) {
        const { code } = await run('gearman', address.port, ['-b', ...priority, '-f', 'upper'], 'later');
        assert.equal(code, 0);
      }
      await waitUntil('the background jobs to be done', async () => {
        const [upper] = await admin.status();
        return upper?.total === 0;
      });
    });

    test('jobs from the gearman command run by priority', async (t) => {
      const { address, worker } = await start(t);
      for (const [priority, payload] of [
        ['-L', 'low'],
        ['-b', 'normal'],
        ['-I', 'high'],
      ] as const) {
        await run('gearman', address.port, ['-b', priority, '-f', 'f'], payload);
      }
      const order: string[] = [];
      await new Promise<void>((resolve) => {
        worker().add('f', (job) => {
          order.push(job.payload.toString());
          if (order.length === 3) resolve();
        });
      });
      assert.deepEqual(order, ['high', 'normal', 'low']);
    });

    test('a killed gearman -w’s job runs on our worker', async (t) => {
      const { address, client, worker } = await start(t);
      const kill = startWorker(t, address.port, 'f', 'sleep', '600');
      const job = client.submit('f', 'payload');
      await waitUntil('the job to run', async () => (await client.status(await job.handle)).running);
      await kill();
      worker().add('f', ({ payload }) => payload);
      assert.equal(String(await job), 'payload');
    });

    test('gearadmin shows our server’s functions, workers and version', async (t) => {
      const { address, client, worker } = await start(t);
      const able = worker();
      able.setFunctions({ 'image-build:debian': () => {} });
      await client.submit('image-build:debian');
      await client.submit('waits', '', { background: true, unique: 'key' });
      const show = async (...args: string[]) => {
        const { code, stdout } = await run('gearadmin', address.port, args);
        assert.equal(code, 0);
        return stdout.split('\n').filter(Boolean).toSorted();
      };
      assert.deepEqual(await show('--status'), ['.', 'image-build:debian\t0\t0\t1', 'waits\t1\t0\t0']);
      assert.deepEqual(await show('--priority-status'), [
        '.',
        'image-build:debian\t0\t0\t0\t1',
        'waits\t0\t1\t0\t0',
      ]);
      const workers = await show('--workers');
      assert.ok(
        workers.some((line) => /^\d+ 127\.0\.0\.1 - : image-build:debian$/.test(line)),
        workers.join(),
      );
      assert.match((await show('--server-version')).join(), /^\d+\.\d+\.\d+/);
      assert.match((await show('--getpid')).join(), /^\d+$/);
      assert.match((await show('--show-jobs')).join(), /^\.,H:\S+\t0\t0\t1$/);
      assert.deepEqual(await show('--show-unique-jobs'), ['.', 'key']);
    });

    test('gearadmin creates and drops functions, and cancels jobs', async (t) => {
      const { address, admin, client } = await start(t);
      assert.equal((await run('gearadmin', address.port, ['--create-function', 'made'])).code, 0);
      assert.equal((await admin.status()).length, 1);
      const [{ name } = { name: '' }] = await admin.status();
      assert.equal((await run('gearadmin', address.port, ['--drop-function', name])).code, 0);
      assert.deepEqual(await admin.status(), []);
      const job = client.submit('f');
      await run('gearadmin', address.port, ['--cancel-job', await job.handle]);
      await assert.rejects(job.result, { code: 'job-failed' });
    });
  });
}
