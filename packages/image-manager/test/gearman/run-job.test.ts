import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import {
  Client,
  type GearmanError,
  JobServer,
  Worker,
  type WorkerFunction,
} from '@nodepool-builder/gearman-node';
import { runJob } from '../../src/gearman/run-job.ts';
import { Hold } from '../hold.ts';

/** Starts a job server with a worker that runs one job at a time. Returns a client. */
async function site(t: TestContext, work: WorkerFunction): Promise<Client> {
  const server = new JobServer();
  t.after(() => server.close());
  const address = await server.listen(0);
  const worker = new Worker({ servers: [address] });
  t.after(() => worker.close({ signal: AbortSignal.abort() }));
  worker.add('work', work);
  const client = new Client({ servers: [address] });
  t.after(() => client.close());
  return client;
}

const code = (expected: string) => (error: GearmanError) => error.code === expected;

test('a job returns the builder’s result', async (t) => {
  const client = await site(t, ({ payload, unique }) => `${unique}: ${payload.toString()}`);
  const result = await runJob(client, 'work', 'do it', 'key', { time: 60, signal: t.signal });
  assert.equal(result.toString(), 'key: do it');
});

test('a running job ends at its time limit', async (t) => {
  const hold = new Hold();
  const client = await site(t, async (job) => {
    job.sendStatus(0, 100);
    await hold.wait(job.signal);
    return '';
  });
  const begun = performance.now();
  await assert.rejects(
    runJob(client, 'work', '', 'key', { time: 0.2, signal: t.signal }),
    (error: GearmanError) =>
      error.code === 'job-timeout' && /work took longer than 0\.2 s/.test(error.message),
  );
  assert.ok(performance.now() - begun >= 190);
});

test('progress does not extend a job’s time limit', async (t) => {
  const client = await site(t, async (job) => {
    const timer = setInterval(() => job.sendStatus(1, 100), 20);
    await new Hold().wait(job.signal).finally(() => clearInterval(timer));
    return '';
  });
  await assert.rejects(
    runJob(client, 'work', '', 'key', { time: 0.2, signal: t.signal }),
    code('job-timeout'),
  );
});

test('a job’s time in the queue does not count towards its time limit', async (t) => {
  const hold = new Hold();
  const client = await site(t, async (job) => {
    if (job.unique === 'first') await hold.wait(job.signal);
    job.sendStatus(0, 100);
    return job.unique;
  });
  const time = 0.1;
  const first = client.submit('work', '', { unique: 'first' });
  await hold.reached;
  const queued = runJob(client, 'work', '', 'second', { time, signal: t.signal });
  // The time limit passes while this job waits in the queue.
  const other = runJob(client, 'work', '', 'third', { time, signal: AbortSignal.timeout(300) });
  await assert.rejects(other, code('aborted'));
  hold.release();
  assert.equal((await queued).toString(), 'second');
  await first;
});

test('an abort ends the wait for a job', async (t) => {
  const hold = new Hold();
  const client = await site(t, async ({ signal }) => {
    await hold.wait(signal);
    return '';
  });
  const stop = new AbortController();
  const running = runJob(client, 'work', '', 'key', { time: 60, signal: stop.signal });
  await hold.reached;
  stop.abort(new Error('stopped'));
  await assert.rejects(running, code('aborted'));
});

test('a job fails with the builder’s exception', async (t) => {
  const client = await site(t, () => {
    throw new Error('no space left');
  });
  await assert.rejects(
    runJob(client, 'work', '', 'key', { time: 60, signal: t.signal }),
    code('job-exception'),
  );
});

test('a job that no builder starts within a day is cancelled', async (t) => {
  const hold = new Hold();
  const client = await site(t, async (job) => {
    await hold.wait(job.signal);
    return '';
  });
  const first = client.submit('work', '', { unique: 'first' });
  await hold.reached;
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const cancelled: string[] = [];
  const cancel = async (handle: string): Promise<void> => void cancelled.push(handle);
  const queued = runJob(client, 'work', '', 'second', { time: 60, signal: t.signal, cancel });
  const job = client.submit('work', '', { unique: 'second' }); // the server merges both by their unique key
  const handle = await job.handle;
  t.mock.timers.tick(24 * 3_600_000 + 60_000);
  await assert.rejects(queued, /work waited over 24 hours for a builder; start more of them/);
  assert.deepEqual(cancelled, [handle]);
  t.mock.timers.reset();
  hold.release();
  await Promise.all([first, job]);
});
