import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Client } from '../../src/client/client.ts';
import { WorkFailError } from '../../src/errors.ts';
import { Worker } from '../../src/worker/worker.ts';
import { JobServerSite } from '../fixtures/job-server-site.ts';
import { ScriptedServer } from '../fixtures/scripted-server.ts';

/** A client and a worker of one job server, closed after the test. */
async function working(t: TestContext): Promise<{ site: JobServerSite; client: Client; worker: Worker }> {
  const site = await JobServerSite.start(t);
  const client = new Client({ servers: [site.address] });
  const worker = new Worker({ servers: [site.address] });
  t.after(() => Promise.all([client.close(), worker.close()]));
  return { site, client, worker };
}

test('a job’s result has exactly the bytes that the worker returned', async (t) => {
  const { client, worker } = await working(t);
  worker.add('reverse', (job) => job.payload.toReversed());
  const payload = Buffer.from(Array.from({ length: 70_000 }, (_, index) => index % 256));
  assert.deepEqual(await client.submit('reverse', payload), Buffer.from(payload.toReversed()));
  assert.deepEqual(await client.submit('reverse').result, Buffer.alloc(0));
});

test('a job’s events arrive in order, before its result', async (t) => {
  const { client, worker } = await working(t);
  worker.add('count', async (job) => {
    job.sendStatus(1, 2);
    await job.sendData('half');
    await job.sendWarning('careful');
    return 'done';
  });
  const job = client.submit('count');
  const events: string[] = [];
  for await (const event of job) {
    events.push(event.type === 'status' ? `${event.numerator}/${event.denominator}` : String(event.data));
  }
  assert.deepEqual(events, ['1/2', 'half', 'careful']);
  assert.equal(String(await job), 'done');
});

test('a failed job and a job with an exception reject with distinct errors', async (t) => {
  const { client, worker } = await working(t);
  worker.setFunctions({
    fails: () => Promise.reject(new WorkFailError('no')),
    throws: () => Promise.reject(new Error('boom')),
  });
  await assert.rejects(client.submit('fails').result, { code: 'job-failed' });
  await assert.rejects(client.submit('throws').result, { code: 'job-exception', data: Buffer.from('boom') });
});

test('a client can query the status of a background job by its handle', async (t) => {
  const { client, worker } = await working(t);
  const started = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  const over = Promise.withResolvers<void>();
  worker.add('f', async (job) => {
    job.sendStatus(3, 4);
    started.resolve();
    await end.promise;
    void job.acknowledged.then(over.resolve);
  });
  const job = client.submit('f', '', { background: true });
  const handle = await job.handle;
  assert.equal((await job).length, 0);
  await started.promise;
  await worker.registered();
  assert.deepEqual(await client.status(handle), { known: true, running: true, numerator: 3, denominator: 4 });
  end.resolve();
  await over.promise;
  assert.equal((await client.status(handle)).known, false);
});

test('concurrent jobs get their own results', async (t) => {
  const { client, worker } = await working(t);
  worker.add('echo', (job) => job.payload);
  const jobs = Array.from({ length: 500 }, (_, index) => client.submit('echo', String(index)).result);
  assert.deepEqual((await Promise.all(jobs)).map(Number), [...jobs.keys()]);
});

test('a client sends its jobs to the first reachable server', async (t) => {
  const { site, worker } = await working(t);
  const gone = await ScriptedServer.listen();
  const { address } = gone;
  await gone.close();
  worker.add('f', () => 'done');
  const client = new Client({ servers: [address, site.address] });
  t.after(() => client.close());
  assert.equal(String(await client.submit('f')), 'done');
});

test('a job rejects with an error that names each server if none is reachable', async (t) => {
  const gone = await Promise.all([ScriptedServer.listen(), ScriptedServer.listen()]);
  const servers = gone.map((server) => server.address);
  await Promise.all(gone.map((server) => server.close()));
  const client = new Client({ servers });
  t.after(() => client.close());
  for (const attempt of [client.submit('f').result, client.submit('f').handle, client.status('H:x:1')]) {
    await assert.rejects(attempt, (error: Error & { code: string }) => {
      assert.equal(error.code, 'connect-failed');
      for (const { port } of servers) assert.ok(error.message.includes(String(port)));
      return true;
    });
  }
});

test('a job in flight rejects with JobLostError when its server is lost', async (t) => {
  const { site, client } = await working(t);
  const job = client.submit('f');
  await job.handle;
  await site.server.close();
  await assert.rejects(job.result, { code: 'job-lost', retriable: true });
});

test('a job may be resubmitted to another server when its server is lost', async (t) => {
  const [first, second] = [await JobServerSite.start(t), await JobServerSite.start(t)];
  const client = new Client({ servers: [first.address, second.address] });
  const worker = new Worker({ servers: [second.address] });
  t.after(() => Promise.all([client.close(), worker.close()]));
  worker.add('f', () => 'done after all');
  const job = client.submit('f', '', { onServerLost: 'resubmit' });
  await job.handle;
  await first.server.close();
  assert.equal(String(await job), 'done after all');
});

test('a resubmitted job waits until a server is reachable again', async (t) => {
  const site = await JobServerSite.start(t);
  const client = new Client({ servers: [site.address], reconnect: { minDelay: 1, maxDelay: 10 } });
  const worker = new Worker({ servers: [site.address], reconnect: { minDelay: 1, maxDelay: 10 } });
  t.after(() => Promise.all([client.close(), worker.close()]));
  const job = client.submit('f', '', { onServerLost: 'resubmit' });
  await job.handle;
  await site.server.close();
  // Only resubmitted jobs wait, so this one fails.
  await assert.rejects(client.submit('f').result, { code: 'connect-failed' });
  worker.add('f', () => 'done after all');
  await site.server.listen(site.port);
  assert.equal(String(await job), 'done after all');
});

test('a client reconnects after its server was lost', async (t) => {
  const { site, client, worker } = await working(t);
  const lost = client.submit('f');
  await lost.handle;
  await site.server.close();
  await assert.rejects(lost.result, { code: 'job-lost' });
  await site.server.listen(site.port);
  worker.add('f', () => 'done');
  assert.equal(String(await client.submit('f')), 'done');
});

test('closing a client rejects jobs in flight and later jobs', async (t) => {
  const { client } = await working(t);
  const job = client.submit('f');
  await job.handle;
  await client.close();
  await assert.rejects(job.result, { code: 'closed' });
  assert.throws(() => client.submit('f'), { code: 'closed' });
  await assert.rejects(client.status('H:x:1'), { code: 'closed' });
  await client.close();
});

test('closing a client aborts its attempt to connect', async () => {
  const server = await ScriptedServer.listen();
  const client = new Client({ servers: [server.address] });
  const job = client.submit('f');
  await client.close();
  await assert.rejects(job.result, { code: 'closed' });
  await server.close();
});

test('a job’s timeout covers the wait for a worker', async (t) => {
  const { client } = await working(t);
  await assert.rejects(client.submit('nobody offers it', '', { timeout: 20 }).result, {
    code: 'job-timeout',
  });
});

test('a resubmitted job backs off from a server that accepts and closes connections', async (t) => {
  t.mock.method(Math, 'random', () => 0); // without jitter
  const server = await ScriptedServer.listen();
  const client = new Client({ servers: [server.address], reconnect: { minDelay: 10, maxDelay: 10_000 } });
  t.after(() => Promise.all([server.close(), client.close()]));
  const job = client.submit('f', '', { onServerLost: 'resubmit' });
  const closed = assert.rejects(job.result, { code: 'closed' });
  const start = performance.now();
  for (let connections = 0; connections < 6; connections += 1) {
    const peer = await server.accept();
    await peer.until('SUBMIT_JOB');
    await peer.close();
  }
  // 10, 20, 40, 80 and 160 ms; a timer may fire up to two milliseconds early.
  assert.ok(performance.now() - start >= 300, `${performance.now() - start} ms`);
  await client.close();
  await closed;
});

test('a resubmitted job prefers another server to the one that closed the connection', async (t) => {
  const [hangsUp, site] = [await ScriptedServer.listen(), await JobServerSite.start(t)];
  const client = new Client({ servers: [hangsUp.address, site.address] });
  const worker = new Worker({ servers: [site.address] });
  t.after(() => Promise.all([client.close(), worker.close(), hangsUp.close()]));
  worker.add('f', () => 'done after all');
  const job = client.submit('f', '', { onServerLost: 'resubmit' });
  await (await hangsUp.accept()).close();
  assert.equal(String(await job), 'done after all');
});

/** Invalid submissions, as an untyped program may make them. */
const WRONG: readonly (readonly unknown[])[] = [
  [undefined],
  [{ name: 'f' }],
  ['f', { a: 1 }],
  ['f', 7],
  ['f', null],
  ['f', [1, 2]],
  ['f', '', { priority: 'urgent' }],
  ['f', '', { unique: 7 }],
  ['f', '', { background: 'yes' }],
  ['f', '', { background: true, startAt: 'tomorrow' }],
  ['f', '', { background: true, startAt: new Date(Number.NaN) }],
  ['f', '', { reducer: 7 }],
  ['f', '', { reducer: 'r', aggregator: {} }],
  ['f', '', { signal: {} }],
  ['f', '', { timeout: '10' }],
  ['f', '', { timeout: -1 }],
  ['f', '', { timeout: Number.NaN }],
  ['f', '', { onServerLost: 'retry' }],
];

test('an invalid submission throws at the call and does not affect other waiting requests', async (t) => {
  const { client, worker } = await working(t);
  worker.add('echo', (job) => job.payload);
  const before = client.submit('echo', 'before').result;
  for (const wrong of WRONG) {
    assert.throws(
      () => client.submit(...(wrong as Parameters<Client['submit']>)),
      { code: 'invalid-argument' },
      JSON.stringify(wrong),
    );
  }
  const after = client.submit('echo', 'after').result;
  assert.deepEqual((await Promise.all([before, after])).map(String), ['before', 'after']);
});

test('a status request that cannot be sent fails alone, and closing the client still works', async (t) => {
  const { client } = await working(t);
  const payload = Buffer.from('payload');
  const [first, second, third] = [client.submit('f'), client.submit('f', payload), client.submit('f')];
  Object.defineProperty(payload, 'length', {
    get: () => {
      throw new Error('no length any longer');
    },
  });
  await Promise.all([first.handle, third.handle]);
  await assert.rejects(second.result, { code: 'internal', message: /no length/ });
  await client.close();
  await assert.rejects(first.result, { code: 'closed' });
});

test('a job with a timeout of 30 days, or an infinite one, keeps running', async (t) => {
  const { client, worker } = await working(t);
  worker.add('f', () => 'done');
  for (const timeout of [30 * 24 * 60 * 60 * 1000, Number.POSITIVE_INFINITY]) {
    assert.equal(String(await client.submit('f', '', { timeout })), 'done');
  }
});

test('two loops over the events of one job share them, and both end', async (t) => {
  const { client, worker } = await working(t);
  worker.add('f', async (job) => {
    for (const piece of ['1', '2', '3']) await job.sendData(piece);
  });
  const job = client.submit('f');
  const read: string[] = [];
  const loop = async () => {
    for await (const event of job) if (event.type === 'data') read.push(String(event.data));
  };
  await Promise.all([loop(), loop()]);
  assert.deepEqual(read.toSorted(), ['1', '2', '3']);
});

test('a client rejects invalid options at the call and sends no packet', async (t) => {
  const { client } = await working(t);
  const refused = { code: 'invalid-argument' };
  assert.throws(() => new Client({ servers: [] }), refused);
  assert.throws(() => client.submit(''), refused);
  assert.throws(() => client.submit('a\0b'), refused);
  assert.throws(() => client.submit('f', '', { unique: 'x'.repeat(64) }), refused);
  await assert.rejects(client.status('x'.repeat(64)), refused);
});
