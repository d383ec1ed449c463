import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { SERVERS } from './site.ts';

for (const [server, start] of Object.entries(SERVERS)) {
  suite(`jobs with a reducer, by ${server}`, () => {
    test('GRAB_JOB_ALL returns the reducer, and the data after the aggregator', async (t) => {
      const { connect } = await start(t);
      const [client, worker] = [await connect(), await connect()];
      worker.send('CAN_DO', 'f');
      const [, first = ''] = await client.ask('SUBMIT_REDUCE_JOB', 'f', 'a', 'sum', 'aggregator', 'x\0y\0');
      assert.deepEqual(await worker.ask('GRAB_JOB_ALL'), [
        'JOB_ASSIGN_ALL',
        first,
        'f',
        'a',
        'sum',
        'x\0y\0',
      ]);
      worker.send('WORK_COMPLETE', first, 'done');
      assert.deepEqual(await client.next(), ['WORK_COMPLETE', first, 'done']);
    });

    test('GRAB_JOB_UNIQ and GRAB_JOB return the job without its reducer', async (t) => {
      const { connect } = await start(t);
      const [client, worker] = [await connect(), await connect()];
      worker.send('CAN_DO', 'f');
      for (const [grab, reducer, assigned] of [
        ['GRAB_JOB_ALL', '', ['JOB_ASSIGN_UNIQ', 'f', 'key', 'x']],
        ['GRAB_JOB_UNIQ', 'sum', ['JOB_ASSIGN_UNIQ', 'f', 'key', 'x']],
        ['GRAB_JOB', 'sum', ['JOB_ASSIGN', 'f', 'x']],
      ] as const) {
        await client.ask('SUBMIT_REDUCE_JOB', 'f', 'key', reducer, '', 'x');
        const [name, handle = '', ...rest] = await worker.ask(grab);
        assert.deepEqual([name, ...rest], assigned);
        worker.send('WORK_COMPLETE', handle, '');
        await client.until('WORK_COMPLETE');
      }
    });

    test('a background job with a reducer outlives its client', async (t) => {
      const { admin, connect } = await start(t);
      const [client, worker] = [await connect(), await connect()];
      const [, handle] = await client.ask('SUBMIT_REDUCE_JOB_BACKGROUND', 'f', 'a', 'sum', '', 'x');
      await client.close();
      assert.deepEqual(await admin.showJobs(), [{ handle, retries: 0, ignored: false, background: true }]);
      worker.send('CAN_DO', 'f');
      assert.equal((await worker.ask('GRAB_JOB_ALL'))[0], 'JOB_ASSIGN_ALL');
    });
  });
}
