import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import type { ServerAddress } from '../../src/connection/server-address.ts';
import { type GearmanError, WorkFailError } from '../../src/errors.ts';
import type { WorkerJob } from '../../src/worker/worker-job.ts';
import { encodePacket } from '../fixtures/encode-packet.ts';
import { assign, expect, held, scripted } from '../fixtures/scripted-worker.ts';

test('a worker registers, grabs, sleeps without a job, and grabs again after NOOP', async (t) => {
  const { server } = await scripted(t, { f: () => 'done' });
  await expect(server, ['CAN_DO', 'f'], ['GRAB_JOB_UNIQ']);
  server.send('NO_JOB');
  await expect(server, ['PRE_SLEEP']);
  server.send('NOOP');
  await expect(server, ['GRAB_JOB_UNIQ']);
  assign(server, 'f');
  await expect(server, ['WORK_COMPLETE', 'H:x:1', 'done'], ['GRAB_JOB_UNIQ']);
});

test('a worker that gets single jobs sleeps after a job without another grab', async (t) => {
  const { server } = await scripted(t, { f: () => 'done' });
  await expect(server, ['CAN_DO', 'f'], ['GRAB_JOB_UNIQ']);
  for (let job = 0; job < 4; job += 1) {
    assign(server, 'f');
    await expect(server, ['WORK_COMPLETE', 'H:x:1', 'done'], ['GRAB_JOB_UNIQ']);
    server.send('NO_JOB');
    await expect(server, ['PRE_SLEEP']);
    server.send('NOOP');
    await expect(server, ['GRAB_JOB_UNIQ']);
  }
  assign(server, 'f');
  await expect(server, ['WORK_COMPLETE', 'H:x:1', 'done'], ['PRE_SLEEP']);
  server.send('NOOP');
  await expect(server, ['GRAB_JOB_UNIQ']);
});

test('a worker sends its client id first', async (t) => {
  const { server } = await scripted(t, { f: () => {} }, { clientId: 'builder-1' });
  await expect(server, ['SET_CLIENT_ID', 'builder-1'], ['CAN_DO', 'f']);
});

test('a worker without functions neither grabs nor sleeps', async (t) => {
  const { server, worker } = await scripted(t, {});
  worker.add('f', () => {});
  await expect(server, ['CAN_DO', 'f'], ['GRAB_JOB_UNIQ']);
});

test('a job whose handler throws ends with WORK_FAIL for a WorkFailError, and with WORK_EXCEPTION otherwise', async (t) => {
  const { server } = await scripted(t, {
    fails: () => Promise.reject(new WorkFailError('no')),
    throws: () => Promise.reject(new Error('boom\nat line 1')),
  });
  await server.until('GRAB_JOB_UNIQ');
  assign(server, 'fails', 'H:x:1');
  await expect(server, ['WORK_FAIL', 'H:x:1'], ['GRAB_JOB_UNIQ']);
  assign(server, 'throws', 'H:x:2');
  await expect(server, ['WORK_EXCEPTION', 'H:x:2', 'boom'], ['GRAB_JOB_UNIQ']);
});

test('a job of an unregistered function fails', async (t) => {
  const { server } = await scripted(t, { f: () => {} });
  await server.until('GRAB_JOB_UNIQ');
  assign(server, 'other');
  await expect(server, ['WORK_FAIL', 'H:x:1'], ['GRAB_JOB_UNIQ']);
});

test('a worker’s outstanding grabs grow with the number of jobs, up to the free slots', async (t) => {
  const { handler, end } = held();
  const { server, worker } = await scripted(t, { f: handler }, { concurrency: 4 });
  await expect(server, ['CAN_DO', 'f'], ['GRAB_JOB_UNIQ']);
  assign(server, 'f', 'H:x:1');
  await expect(server, ['GRAB_JOB_UNIQ'], ['GRAB_JOB_UNIQ']);
  assign(server, 'f', 'H:x:2');
  await expect(server, ['GRAB_JOB_UNIQ']);
  server.send('NO_JOB');
  server.send('NO_JOB');
  await expect(server, ['PRE_SLEEP']);
  end('done');
  await expect(server, ['WORK_COMPLETE', 'H:x:1', 'done'], ['WORK_COMPLETE', 'H:x:2', 'done']);
  server.send('NOOP');
  await expect(server, ['GRAB_JOB_UNIQ']);
  worker.add('g', () => {});
  await expect(server, ['CAN_DO', 'g']);
});

test('closing a worker waits until the server has confirmed the result', async (t) => {
  const { handler, started, end } = held();
  const { server, worker } = await scripted(t, { f: handler });
  await server.until('GRAB_JOB_UNIQ');
  assign(server, 'f');
  await started;
  const closing = worker.close();
  end('done');
  await expect(server, ['WORK_COMPLETE', 'H:x:1', 'done'], ['CANT_DO', 'f']);
  const [name, token = ''] = await server.next();
  assert.equal(name, 'ECHO_REQ');
  server.send('ECHO_RES', token);
  await Promise.all([closing, server.closed]);
});

test('closing an idle worker deregisters no function, as the server drops them', async (t) => {
  const { server, worker } = await scripted(t, { f: () => {} });
  await server.until('GRAB_JOB_UNIQ');
  server.send('NO_JOB');
  await server.until('PRE_SLEEP');
  const closing = worker.close();
  const [name, token = ''] = await server.next();
  assert.equal(name, 'ECHO_REQ');
  server.send('ECHO_RES', token);
  await Promise.all([closing, server.closed]);
});

test('a server without GRAB_JOB_UNIQ gets GRAB_JOB', async (t) => {
  const { server } = await scripted(t, { f: () => 'done' });
  await server.until('GRAB_JOB_UNIQ');
  server.send('ERROR', 'server_error', 'unknown command');
  await expect(server, ['GRAB_JOB']);
  server.send('JOB_ASSIGN', 'H:x:1', 'f', '');
  await expect(server, ['WORK_COMPLETE', 'H:x:1', 'done'], ['GRAB_JOB']);
});

test('a server that supports only GRAB_JOB gets WORK_FAIL after an exception', async (t) => {
  const { server } = await scripted(t, { f: () => Promise.reject(new Error('boom')) });
  await server.until('GRAB_JOB_UNIQ');
  server.send('ERROR', 'server_error', 'unknown command');
  await expect(server, ['GRAB_JOB']);
  server.send('JOB_ASSIGN', 'H:x:1', 'f', '');
  await expect(server, ['WORK_EXCEPTION', 'H:x:1', 'boom'], ['WORK_FAIL', 'H:x:1'], ['GRAB_JOB']);
});

test('a worker with takesReducers gets reducers from a server that supports them', async (t) => {
  const { server } = await scripted(
    t,
    { f: (job) => `${job.unique} ${job.reducer}` },
    { takesReducers: true },
  );
  await expect(server, ['CAN_DO', 'f'], ['GRAB_JOB_ALL']);
  server.send('JOB_ASSIGN_ALL', 'H:x:1', 'f', 'key', 'r', '');
  await expect(server, ['WORK_COMPLETE', 'H:x:1', 'key r'], ['GRAB_JOB_ALL']);
  assign(server, 'f', 'H:x:2');
  await expect(server, ['WORK_COMPLETE', 'H:x:2', ' '], ['GRAB_JOB_ALL']);
});

test('a server without GRAB_JOB_ALL gets GRAB_JOB_UNIQ', async (t) => {
  const { server } = await scripted(t, { f: () => 'done' }, { takesReducers: true });
  await server.until('GRAB_JOB_ALL');
  server.send('ERROR', 'INVALID_COMMAND', 'unknown');
  await expect(server, ['GRAB_JOB_UNIQ']);
  assign(server, 'f');
  await expect(server, ['WORK_COMPLETE', 'H:x:1', 'done'], ['GRAB_JOB_UNIQ']);
});

function untilStopped(job: WorkerJob): Promise<void> {
  return new Promise((_, reject) => {
    job.signal.addEventListener('abort', () => reject(job.signal.reason as GearmanError));
  });
}

test('a function’s time limit is registered with the server, and aborts the job’s signal', async (t) => {
  const { server } = await scripted(t, { f: { handler: untilStopped, timeout: 20 }, g: () => {} });
  await expect(server, ['CAN_DO_TIMEOUT', 'f', '20'], ['CAN_DO', 'g'], ['GRAB_JOB_UNIQ']);
  assign(server, 'f');
  await expect(
    server,
    ['WORK_EXCEPTION', 'H:x:1', 'job H:x:1 of f did not end within 20 ms'],
    ['GRAB_JOB_UNIQ'],
  );
});

test('ERROR for a lost job does not count as the response to a grab', async (t) => {
  const { server } = await scripted(t, { f: () => 'done' });
  await server.until('GRAB_JOB_UNIQ');
  server.send('ERROR', 'JOB_NOT_FOUND', 'gone');
  assign(server, 'f');
  await expect(server, ['WORK_COMPLETE', 'H:x:1', 'done'], ['GRAB_JOB_UNIQ']);
});

test('a grab without a response closes the connection, and the worker reconnects', async (t) => {
  const { server, worker, accept } = await scripted(t, { f: () => 'done' }, { timeout: 2000 });
  const reason = new Promise((resolve) => worker.once('disconnect', (_server, error) => resolve(error.code)));
  await server.until('GRAB_JOB_UNIQ');
  await server.closed;
  assert.equal(await reason, 'server-silent');
  await expect(await accept(), ['CAN_DO', 'f'], ['GRAB_JOB_UNIQ']);
});

test('a silent server gets twice the time limit on the next connection', async (t) => {
  const { worker } = await scripted(t, { f: () => 'done' }, { timeout: 200 });
  const limits: (string | undefined)[] = [];
  for (let connection = 0; connection < 2; connection += 1) {
    const [, error] = await once(worker, 'disconnect');
    limits.push(/within (\d+) ms/.exec(error.message)?.[1]);
  }
  assert.deepEqual(limits, ['200', '400']);
});

test('a worker registers its current functions after a lost connection', async (t) => {
  const { server, worker, accept } = await scripted(t, { f: () => {}, g: () => {} });
  await server.until('GRAB_JOB_UNIQ');
  await server.close();
  worker.setFunctions({ g: () => {}, h: () => {} });
  await expect(await accept(), ['CAN_DO', 'g'], ['CAN_DO', 'h'], ['GRAB_JOB_UNIQ']);
});

test('a job whose server is lost is notified, its result is discarded, and its slot becomes free', async (t) => {
  const { promise: lost, resolve } = Promise.withResolvers<unknown>();
  const { server, accept } = await scripted(t, {
    f: (job) =>
      new Promise((end) =>
        job.connectionLost.addEventListener('abort', () => {
          resolve(job.connectionLost.reason);
          assert.equal(job.signal.aborted, false);
          end('for nobody');
        }),
      ),
  });
  await server.until('GRAB_JOB_UNIQ');
  assign(server, 'f');
  await server.close();
  assert.equal(((await lost) as { code: string }).code, 'connection-lost');
  await expect(await accept(), ['CAN_DO', 'f'], ['GRAB_JOB_UNIQ']);
});

test('a worker with onServerLost abort aborts the jobs of a lost server', async (t) => {
  const { promise: stopped, resolve } = Promise.withResolvers<unknown>();
  const { server } = await scripted(
    t,
    {
      f: (job) =>
        new Promise((end) =>
          job.signal.addEventListener('abort', () => {
            resolve(job.signal.reason);
            end('');
          }),
        ),
    },
    { onServerLost: 'abort' },
  );
  await server.until('GRAB_JOB_UNIQ');
  assign(server, 'f');
  await server.close();
  assert.equal(((await stopped) as { code: string }).code, 'connection-lost');
});

test('a malformed packet closes a worker’s connection, but not the worker', async (t) => {
  const { server, accept } = await scripted(t, { f: () => {} });
  await server.until('GRAB_JOB_UNIQ');
  server.sendBytes('HTTP/1.1 400 Bad Request\r\n\r\n');
  await server.closed;
  await expect(await accept(), ['CAN_DO', 'f'], ['GRAB_JOB_UNIQ']);
});

test('a worker grabs more slowly after repeated wake-ups without a job', async (t) => {
  const { server } = await scripted(t, { f: () => {} });
  await expect(server, ['CAN_DO', 'f'], ['GRAB_JOB_UNIQ']);
  const start = performance.now();
  for (let times = 0; times < 14; times += 1) {
    // In one chunk, so that the wake-up counts as a quick one.
    server.sendBytes(Buffer.concat([encodePacket('RES', 'NO_JOB'), encodePacket('RES', 'NOOP')]));
    await expect(server, ['PRE_SLEEP'], ['GRAB_JOB_UNIQ']);
  }
  assert.ok(performance.now() - start > 100, 'the grabs were delayed');
});

test('a job that was not grabbed closes the connection, and the worker can still be closed', async (t) => {
  const ran: string[] = [];
  const { server, worker, accept } = await scripted(t, { f: async ({ handle }) => void ran.push(handle) });
  const lost = once(worker, 'disconnect');
  // In one chunk: between two, the worker could finish the first job and grab another.
  server.sendBytes(
    Buffer.concat(
      ['H:x:1', 'H:x:2'].map((handle) => encodePacket('RES', 'JOB_ASSIGN_UNIQ', handle, 'f', '', '')),
    ),
  );
  const [, error] = (await lost) as [ServerAddress, GearmanError];
  assert.equal(error.code, 'packet-unexpected');
  assert.deepEqual(ran, ['H:x:1']);
  await expect(await accept(), ['CAN_DO', 'f'], ['GRAB_JOB_UNIQ']);
});

test('NO_JOB without a grab frees no slot', async (t) => {
  const { server } = await scripted(t, { f: () => {} });
  await expect(server, ['CAN_DO', 'f'], ['GRAB_JOB_UNIQ']);
  server.send('NO_JOB');
  server.send('NO_JOB');
  await expect(server, ['PRE_SLEEP']);
  server.send('NOOP');
  await expect(server, ['GRAB_JOB_UNIQ']);
  server.send('ECHO_RES', 'nothing else was sent');
  assign(server, 'f');
  await expect(server, ['WORK_COMPLETE', 'H:x:1', '']);
});
