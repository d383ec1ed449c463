// Not a unit test: it measures the heap.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Worker as Thread } from 'node:worker_threads';
import { ABANDONED, JobSubscribers, type Subscriber } from '../../src/client/job-subscribers.ts';
import { Client, JobServer, Worker } from '../../src/index.ts';

const JOBS = 5000;

/** Max bytes that a client may keep for a job that the server still has: handle, and entry among its subscribers. */
const BYTES_PER_JOB = 1000;

/** Runs the server in a thread, whose heap is not measured. */
const SERVER = `
  const { JobServer } = await import('${new URL('../../src/index.ts', import.meta.url).href}');
  const { parentPort } = await import('node:worker_threads');
  parentPort.postMessage(await new JobServer().listen(0));
`;

describe('abandoned jobs', () => {
  for (const how of ['signal', 'timeout'] as const) {
    test(`a job abandoned by its ${how} costs the client no memory but its handle`, async (t) => {
      const thread = new Thread(new URL(`data:text/javascript,${encodeURIComponent(SERVER)}`));
      t.after(() => thread.terminate());
      const [address] = (await once(thread, 'message')) as [{ host: string; port: number }];
      const client = new Client({ servers: [address] });
      t.after(() => client.close());
      await abandon(client, 500, how);
      const before = heapInUse();
      await abandon(client, JOBS, how);
      const perJob = (heapInUse() - before) / JOBS;
      assert.ok(perJob < BYTES_PER_JOB, `${Math.round(perJob)} bytes per job`);
    });
  }

  test('an abandoned job still takes its turn among the jobs with the same key', async (t) => {
    const server = new JobServer();
    const address = await server.listen(0);
    const client = new Client({ servers: [address] });
    const worker = new Worker({ servers: [address] });
    t.after(async () => {
      await worker.close();
      await client.close();
      await server.close();
    });
    const stop = new AbortController();
    const options = { unique: 'one' };
    const jobs = [
      client.submit('f', '', options),
      client.submit('f', '', { ...options, signal: stop.signal }),
      client.submit('f', '', options),
    ];
    await Promise.all(jobs.map(({ handle }) => handle));
    stop.abort(new Error('enough'));
    worker.setFunctions({ f: () => 'done' });
    const results = await Promise.allSettled(jobs);
    assert.deepEqual(
      results.map((result) => (result.status === 'fulfilled' ? String(result.value) : result.reason.code)),
      ['done', 'aborted', 'done'],
    );
  });

  test('an abandoned job unsubscribes from the events of its handle', () => {
    const subscribers = new JobSubscribers();
    const [one, other] = [{ ...ABANDONED }, { ...ABANDONED }] as [Subscriber, Subscriber];
    subscribers.add(one);
    subscribers.add(other);
    subscribers.abandon(one);
    subscribers.abandon(one);
    assert.deepEqual([...subscribers], [ABANDONED, other]);
    assert.equal([...subscribers][1], other);
  });
});

/** Submits jobs that no worker runs, and abandons them. */
async function abandon(client: Client, count: number, how: 'signal' | 'timeout'): Promise<void> {
  for (let begun = 0; begun < count; begun += 500) {
    const stop = new AbortController();
    const options = how === 'signal' ? { signal: stop.signal } : { timeout: 50 };
    const jobs = Array.from({ length: 500 }, () => client.submit('f', 'x'.repeat(1000), options));
    const ended = Promise.allSettled(jobs);
    await Promise.allSettled(jobs.map(({ handle }) => handle));
    stop.abort(new Error('enough'));
    await ended;
  }
  await client.status('H:none:1'); // the server has replied to all earlier requests
}

function heapInUse(): number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  for (let times = 0; times < 5; times += 1) collect();
  return process.memoryUsage().heapUsed;
}
