import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Admin } from '../../src/admin/admin.ts';
import { Client } from '../../src/client/client.ts';
import { type GearmanError, WorkFailError } from '../../src/errors.ts';
import { Worker } from '../../src/worker/worker.ts';
import type { WorkerOptions } from '../../src/worker/worker-options.ts';
import { JobServerSite } from '../fixtures/job-server-site.ts';

/** A worker, a client and an admin client of one job server, closed after the test. */
async function working(
  t: TestContext,
  options: Partial<WorkerOptions> = {},
): Promise<{ site: JobServerSite; worker: Worker; client: Client; offered: () => Promise<string[]> }> {
  const site = await JobServerSite.start(t);
  const worker = new Worker({ servers: [site.address], ...options });
  const client = new Client({ servers: [site.address] });
  const admin = new Admin(site.address);
  t.after(() => Promise.all([worker.close(), client.close(), admin.close()]));
  const offered = async () =>
    (await admin.status())
      .filter(({ availableWorkers }) => availableWorkers > 0)
      .map(({ name }) => name)
      .toSorted();
  return { site, worker, client, offered };
}

/** Resolves when the worker is connected. */
async function connected(worker: Worker): Promise<void> {
  await new Promise<void>((resolve) => worker.once('connect', () => resolve()));
}

test('a handler gets the job, and its result goes to the client', async (t) => {
  const { worker, client } = await working(t);
  worker.add('describe', (job) => [job.handle, job.function, job.unique, job.payload.toString()].join('|'));
  const job = client.submit('describe', 'payload', { unique: 'key' });
  assert.equal(String(await job), `${await job.handle}|describe|key|payload`);
});

test('the registered promise resolves once the server has the functions', async (t) => {
  const { worker, offered } = await working(t);
  worker.setFunctions({ a: () => {}, b: () => {} });
  await connected(worker);
  await worker.registered();
  assert.deepEqual(await offered(), ['a', 'b']);
  worker.setFunctions(
    new Map([
      ['b', () => {}],
      ['c', () => {}],
    ]),
  );
  await worker.registered();
  assert.deepEqual(
    (await offered()).filter((name) => name !== 'a'),
    ['b', 'c'],
  );
  assert.deepEqual([...worker.functions], ['b', 'c']);
});

test('a handler may await registered, and a signal aborts the wait', async (t) => {
  const { worker, client, offered } = await working(t);
  worker.add('build', async () => {
    worker.add('upload:1', () => {});
    await worker.registered();
    return (await offered()).join();
  });
  assert.equal(String(await client.submit('build')), 'build,upload:1');
  await assert.rejects(worker.registered({ signal: AbortSignal.abort() }), { code: 'aborted' });
});

test('a worker’s concurrency limits the number of running jobs', async (t) => {
  const { worker, client } = await working(t, { concurrency: 3 });
  let running = 0;
  let most = 0;
  const threeRun = Promise.withResolvers<void>();
  worker.add('f', async () => {
    running += 1;
    most = Math.max(most, running);
    if (running === 3) threeRun.resolve();
    await threeRun.promise;
    await new Promise(setImmediate);
    running -= 1;
  });
  await Promise.all(Array.from({ length: 20 }, () => client.submit('f')));
  assert.equal(most, 3);
});

test('a worker’s concurrency applies to all servers together, which take turns', async (t) => {
  const sites = [await JobServerSite.start(t), await JobServerSite.start(t)];
  const worker = new Worker({ servers: sites.map((site) => site.address) });
  const clients = sites.map((site) => new Client({ servers: [site.address] }));
  t.after(() => Promise.all([worker, ...clients].map((each) => each.close())));
  let running = 0;
  worker.add('f', async () => {
    running += 1;
    assert.equal(running, 1);
    await new Promise(setImmediate);
    running -= 1;
  });
  await Promise.all(clients.flatMap((client) => Array.from({ length: 5 }, () => client.submit('f').result)));
});

test('closing a worker grabs no jobs, waits for the running ones, sends their results, and disconnects', async (t) => {
  const { worker, client, offered } = await working(t, { concurrency: 2 });
  const started = Promise.withResolvers<void>();
  const end = Promise.withResolvers<string>();
  worker.add('f', () => {
    started.resolve();
    return end.promise;
  });
  worker.add('g', () => {});
  const first = client.submit('f');
  await started.promise;

  const closing = worker.close();
  const second = client.submit('f');
  await second.handle;
  assert.throws(() => worker.add('h', () => {}), { code: 'closed' });
  await worker.registered(); // the server has processed the removal of g
  assert.deepEqual(await offered(), ['f'], 'a function with a running job is deregistered later');
  end.resolve('done');
  assert.equal(String(await first), 'done');
  await closing;
  await worker.close();
  assert.deepEqual(await offered(), []);
  assert.deepEqual(await client.status(await second.handle), {
    known: true,
    running: false,
    numerator: 0,
    denominator: 0,
  });
});

test('an aborted close of a worker aborts the jobs and still waits for their handlers', async (t) => {
  const { worker, client } = await working(t);
  const started = Promise.withResolvers<void>();
  worker.add('f', async (job) => {
    started.resolve();
    await new Promise((resolve) => job.signal.addEventListener('abort', resolve));
    return `stopped: ${(job.signal.reason as GearmanError).code}`;
  });
  const job = client.submit('f');
  await started.promise;
  const closing = worker.close();
  const controller = new AbortController();
  const hurried = worker.close({ signal: controller.signal });
  controller.abort();
  assert.equal(String(await job), 'stopped: aborted');
  await Promise.all([closing, hurried]);
});

test('a closing worker removes very many functions over many turns of the event loop while a job runs', async (t) => {
  const { worker, client } = await working(t);
  const started = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  const names = Array.from({ length: 10_000 }, (_, index) => `f${index}`);
  worker.setFunctions(
    new Map(
      names.map((name) => [
        name,
        () => {
          started.resolve();
          return end.promise;
        },
      ]),
    ),
  );
  const job = client.submit('f0');
  await started.promise;
  const closing = worker.close();
  for (let left = names.length; left > 0; await new Promise(setImmediate)) {
    assert.ok(left - worker.functions.size <= 1000);
    left = worker.functions.size;
  }
  end.resolve();
  await Promise.all([job, closing]);
});

test('closing a worker works while its server is unreachable', async (t) => {
  const { site } = await working(t);
  await site.server.close();
  const worker = new Worker({ servers: [site.address] });
  worker.add('f', () => {});
  await worker.close();
});

test('a worker emits events for a lost connection and for the next one', async (t) => {
  const { site, worker, client } = await working(t, { reconnect: { minDelay: 1 } });
  worker.add('f', () => 'done');
  await connected(worker);
  const disconnected = new Promise<GearmanError>((resolve) =>
    worker.once('disconnect', (_server, error) => resolve(error)),
  );
  await site.server.close();
  assert.equal((await disconnected).code, 'connection-lost');
  const again = connected(worker);
  await site.server.listen(site.port);
  await again;
  assert.equal(String(await client.submit('f')), 'done');
});

test('sendData waits while the client does not read', async (t) => {
  const { worker, client } = await working(t);
  worker.add('f', async (job) => {
    for (let piece = 0; piece < 64; piece += 1) await job.sendData(Buffer.alloc(256 * 1024, piece));
    return 'done';
  });
  const job = client.submit('f');
  let bytes = 0;
  for await (const event of job) if (event.type === 'data') bytes += event.data.length;
  assert.equal(bytes, 64 * 256 * 1024);
  assert.equal(String(await job), 'done');
});

test('a worker rejects invalid arguments at the call', async (t) => {
  const { worker } = await working(t);
  const refused = { code: 'invalid-argument' };
  assert.throws(() => new Worker({ servers: [] }), refused);
  for (const concurrency of [0, -1, 1.5, Number.NaN]) {
    assert.throws(() => new Worker({ servers: [{ host: 'h' }], concurrency }), refused);
  }
  worker.add('f', () => {});
  assert.throws(() => worker.setFunctions({ g: () => {}, '': () => {} }), refused);
  assert.deepEqual([...worker.functions], ['f'], 'the functions are unchanged');
});

for (const logsFailures of [true, false]) {
  test(`a failed job is ${logsFailures ? 'logged' : 'not logged if its handler does so'}`, async (t) => {
    const lines: string[] = [];
    const write = (text: string): void => void lines.push(text);
    const logger = { debug: write, info: write, warn: write, error: write };
    const { worker, client } = await working(t, { logger, logsFailures });
    worker.setFunctions({
      fails: () => Promise.reject(new WorkFailError('no space')),
      throws: () => Promise.reject(new Error('no space')),
    });
    await assert.rejects(client.submit('fails').result, { code: 'job-failed' });
    await assert.rejects(client.submit('throws').result);
    assert.equal(lines.filter((line) => line.includes('no space')).length, logsFailures ? 2 : 0);
  });
}
