import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Client, type ClientOptions } from '../src/client/client.ts';
import type { JobServerOptions } from '../src/server/job-server.ts';
import { Worker } from '../src/worker/worker.ts';
import type { JobHandler } from '../src/worker/worker-job.ts';
import type { WorkerOptions } from '../src/worker/worker-options.ts';
import { JobServerSite, settled } from './fixtures/job-server-site.ts';

const LIMIT = 10_000;
const TOO_LARGE = 'x'.repeat(LIMIT);

interface Limits {
  readonly client?: Partial<ClientOptions>;
  readonly worker?: Partial<WorkerOptions>;
  readonly server?: JobServerOptions;
}

/**
 * A client with another job in flight, a worker and a job server. `over` ends the other job, and checks that it and
 * later jobs succeed.
 */
async function limited(t: TestContext, limits: Limits, handler: JobHandler = ({ payload }) => payload) {
  const site = await JobServerSite.start(t, limits.server);
  const client = new Client({ servers: [site.address], ...limits.client });
  const worker = new Worker({ servers: [site.address], concurrency: 2, ...limits.worker });
  t.after(() => Promise.all([client.close(), worker.close()]));
  const lost: Error[] = [];
  worker.on('disconnect', (_server, error) => lost.push(error));
  const end = Promise.withResolvers<string>();
  let runs = 0;
  worker.setFunctions({
    other: () => end.promise,
    f: (job) => {
      runs += 1;
      return handler(job);
    },
  });
  const other = client.submit('other');
  const handle = await other.handle;
  return {
    site,
    client,
    runs: () => runs,
    over: async () => {
      end.resolve('done');
      assert.equal(String(await other), 'done');
      assert.equal(String(await client.submit('other')), 'done');
      assert.equal(await other.handle, handle);
      assert.deepEqual(lost, [], 'the worker kept its connection');
    },
  };
}

const tooLarge = {
  code: 'packet-too-large',
  retriable: false,
  message: /limit of 10000; raise maxPacketSize/,
};
const exception = { code: 'job-exception', retriable: false, message: /limit of 10000; raise maxPacketSize/ };

test('a client rejects a payload over the limit at the call', async (t) => {
  const { client, over } = await limited(t, { client: { maxPacketSize: LIMIT } });
  assert.throws(() => client.submit('f', TOO_LARGE), tooLarge);
  await over();
});

test('a result over the client’s limit fails only its job, which is not resubmitted', async (t) => {
  const { client, over, runs } = await limited(t, { client: { maxPacketSize: LIMIT } }, () => TOO_LARGE);
  const job = client.submit('f', '', { onServerLost: 'resubmit' });
  await assert.rejects(job.result, tooLarge);
  assert.equal(runs(), 1);
  await over();
});

test('a data packet over the client’s limit fails only its job', async (t) => {
  const { client, over } = await limited(t, { client: { maxPacketSize: LIMIT } }, async (job) => {
    await job.sendData('small');
    await job.sendData(TOO_LARGE);
  });
  const job = client.submit('f');
  const read: string[] = [];
  await assert.rejects(async () => {
    for await (const event of job) if (event.type === 'data') read.push(String(event.data));
  }, tooLarge);
  assert.deepEqual(read, ['small']);
  await assert.rejects(job.result, tooLarge);
  await over();
});

test('a payload over the worker’s limit ends the job with an exception, and the handler is not called', async (t) => {
  const { client, over, runs } = await limited(t, { worker: { maxPacketSize: LIMIT } });
  await assert.rejects(client.submit('f', TOO_LARGE).result, exception);
  assert.equal(runs(), 0);
  await over();
});

test('a result over the worker’s limit ends the job with an exception', async (t) => {
  const { client, over, runs } = await limited(t, { worker: { maxPacketSize: LIMIT } }, () => TOO_LARGE);
  await assert.rejects(client.submit('f').result, exception);
  assert.equal(runs(), 1);
  await over();
});

test('sending a data packet over the worker’s limit throws in the handler', async (t) => {
  const { client, over } = await limited(t, { worker: { maxPacketSize: LIMIT } }, async (job) => {
    await assert.rejects(job.sendData(TOO_LARGE), tooLarge);
    await assert.rejects(job.sendWarning(TOO_LARGE), tooLarge);
    await assert.rejects(job.sendData({} as never), { code: 'invalid-argument' });
    return 'told';
  });
  assert.equal(String(await client.submit('f')), 'told');
  await over();
});

test('a server rejects only the submission over its limit', async (t) => {
  const { client, over, runs } = await limited(t, { server: { maxPacketSize: LIMIT } });
  const [before, refused, after] = [
    client.submit('f', 'before').result,
    client.submit('f', TOO_LARGE).result,
    client.submit('f', 'after').result,
  ];
  await assert.rejects(refused, { code: 'server-error', serverCode: 'ARGUMENT_TOO_LARGE', retriable: false });
  assert.deepEqual((await Promise.all([before, after])).map(String), ['before', 'after']);
  assert.equal(runs(), 2);
  await over();
});

test('a result over the server’s limit ends the job with an exception, and the job is not run again', async (t) => {
  const { client, over, runs, site } = await limited(
    t,
    { server: { maxPacketSize: LIMIT } },
    () => TOO_LARGE,
  );
  await assert.rejects(client.submit('f', '', { onServerLost: 'resubmit' }).result, exception);
  const background = client.submit('f', '', { background: true });
  const handle = await background.handle;
  const operator = await site.connect();
  do await settled(operator);
  while ((await client.status(handle)).known);
  assert.equal(runs(), 2);
  await over();
});

test('a result over the server’s limit sends WORK_FAIL to a client without exceptions and JOB_NOT_FOUND to another worker', async (t) => {
  const site = await JobServerSite.start(t, { maxPacketSize: LIMIT });
  const worker = await site.worker('f');
  const [client, handle] = await site.submit('f');
  worker.send('WORK_COMPLETE', handle, TOO_LARGE);
  assert.deepEqual((await worker.next()).slice(0, 2), ['ERROR', 'JOB_NOT_FOUND']);
  await worker.ask('GRAB_JOB');
  worker.send('WORK_COMPLETE', handle, TOO_LARGE);
  assert.deepEqual(await client.next(), ['WORK_FAIL', handle]);
  assert.deepEqual(await worker.ask('GRAB_JOB'), ['NO_JOB']);
});
