import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Client, type ClientOptions } from '../../src/client/client.ts';
import type { Job } from '../../src/client/submitted-job.ts';
import { GearmanError, type GearmanErrorCode, JobLostError } from '../../src/errors.ts';
import { encodePacket } from '../fixtures/encode-packet.ts';
import type { RawPeer } from '../fixtures/raw-peer.ts';
import { ScriptedServer } from '../fixtures/scripted-server.ts';

/** A client and its job server, whose side the test plays. */
async function scripted(
  t: TestContext,
  options: Partial<ClientOptions> = {},
): Promise<{ client: Client; submit: (...args: Parameters<Client['submit']>) => Promise<[RawPeer, Job]> }> {
  const server = await ScriptedServer.listen();
  const client = new Client({ servers: [server.address], ...options });
  t.after(async () => {
    await server.close();
    await client.close();
  });
  let peer: RawPeer | undefined;
  return {
    client,
    submit: async (...args) => {
      const job = client.submit(...args);
      peer ??= await server.accept();
      await peer.until('SUBMIT_JOB');
      return [peer, job];
    },
  };
}

/** Timeout in milliseconds; long, for tests that mock the interval of status requests and lack no reply. */
const TIMEOUT = 60_000;

/** Timeout in milliseconds for tests that wait until it expires. Enough to connect and accept a job on a busy host. */
const SHORT_TIMEOUT = 2000;

/** Returns the bytes that a peer has not sent once their number is stable for many turns of the event loop. */
async function unsentInTheEnd({ socket }: RawPeer): Promise<number> {
  let unsent = socket.writableLength;
  for (let turns = 0; turns < 1000; turns += 1) {
    await new Promise(setImmediate);
    if (socket.writableLength !== unsent) turns = 0;
    unsent = socket.writableLength;
  }
  return unsent;
}

const lostBecauseOf = (code: GearmanErrorCode) => (error: unknown) =>
  error instanceof JobLostError && error.cause instanceof GearmanError && error.cause.code === code;

test('a client requests exceptions, sends its client id, and then submits the job', async (t) => {
  const server = await ScriptedServer.listen();
  const client = new Client({ servers: [server.address], clientId: 'me' });
  t.after(() => Promise.all([server.close(), client.close()]));
  const job = client.submit('f', '\0data', { unique: 'key' });
  const peer = await server.accept();
  assert.deepEqual(await peer.until('SUBMIT_JOB'), [
    ['OPTION_REQ', 'exceptions'],
    ['SET_CLIENT_ID', 'me'],
    ['SUBMIT_JOB', 'f', 'key', '\0data'],
  ]);
  peer.send('OPTION_RES', 'exceptions');
  peer.send('JOB_CREATED', 'H:x:1');
  peer.send('WORK_COMPLETE', 'H:x:1', 'done');
  assert.equal(await job.handle, 'H:x:1');
  assert.equal(String(await job), 'done');
});

test('JOB_CREATED and the job’s other packets may arrive in one chunk', async (t) => {
  const { submit } = await scripted(t);
  const [peer, job] = await submit('f');
  peer.sendBytes(
    Buffer.concat([
      encodePacket('RES', 'JOB_CREATED', 'H:x:1'),
      encodePacket('RES', 'WORK_STATUS', 'H:x:1', 1, 2),
      encodePacket('RES', 'WORK_COMPLETE', 'H:x:1', 'done'),
    ]),
  );
  const events: unknown[] = [];
  for await (const event of job) events.push(event);
  assert.deepEqual(events, [{ type: 'status', numerator: 1, denominator: 2 }]);
  assert.equal(String(await job), 'done');
});

test('a client matches JOB_CREATED and ERROR to its submissions in the order of sending', async (t) => {
  const { submit } = await scripted(t);
  const [peer, first] = await submit('f');
  const [, second] = await submit('f');
  const [, third] = await submit('f');
  peer.send('JOB_CREATED', 'H:x:1');
  peer.send('ERROR', 'QUEUE_ERROR', 'Job queue is full');
  peer.send('JOB_CREATED', 'H:x:3');
  assert.equal(await first.handle, 'H:x:1');
  await assert.rejects(second.result, { code: 'server-error', serverCode: 'QUEUE_ERROR' });
  await assert.rejects(second.handle, { code: 'server-error' });
  assert.equal(await third.handle, 'H:x:3');
});

test('a client ignores a NUL after a handle, which gearmand’s WORK_FAIL has', async (t) => {
  const { submit } = await scripted(t);
  const [peer, job] = await submit('f');
  peer.send('JOB_CREATED', 'H:x:1');
  peer.send('WORK_FAIL', 'H:x:1\0');
  await assert.rejects(job.result, { code: 'job-failed', handle: 'H:x:1' });
});

test('a client ignores packets for finished and unknown jobs', async (t) => {
  const { submit } = await scripted(t);
  const [peer, job] = await submit('f');
  peer.send('WORK_COMPLETE', 'H:other:1', 'not mine');
  peer.send('JOB_CREATED', 'H:x:1');
  peer.send('WORK_EXCEPTION', 'H:x:1', 'boom');
  peer.send('WORK_FAIL', 'H:x:1');
  await assert.rejects(job.result, { code: 'job-exception' });
  const [, next] = await submit('f');
  peer.send('JOB_CREATED', 'H:x:2');
  peer.send('WORK_COMPLETE', 'H:x:2', 'done');
  assert.equal(String(await next), 'done');
});

test('two jobs with the same key share a handle, and each gets its result', async (t) => {
  const { submit } = await scripted(t);
  const [peer, first] = await submit('f', '', { unique: 'key' });
  const [, second] = await submit('f', '', { unique: 'key' });
  for (let times = 0; times < 2; times += 1) peer.send('JOB_CREATED', 'H:x:1');
  for (let times = 0; times < 2; times += 1) peer.send('WORK_COMPLETE', 'H:x:1', 'done');
  assert.deepEqual((await Promise.all([first, second])).map(String), ['done', 'done']);
});

test('a background job gets no packets of a foreground job with the same handle', async (t) => {
  const { client, submit } = await scripted(t);
  const background = client.submit('f', '', { unique: 'key', background: true });
  const [peer, foreground] = await submit('f', '', { unique: 'key' });
  for (let times = 0; times < 2; times += 1) peer.send('JOB_CREATED', 'H:x:1');
  peer.send('WORK_COMPLETE', 'H:x:1', 'done');
  assert.equal(String(await foreground), 'done');
  assert.equal(await background.handle, 'H:x:1');
});

test('a submission without a response closes the connection', async (t) => {
  const { submit } = await scripted(t, { timeout: SHORT_TIMEOUT });
  const [peer, job] = await submit('f');
  await assert.rejects(job.result, lostBecauseOf('server-silent'));
  await peer.closed;
});

test('a job may run for longer than the client’s timeout', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { submit } = await scripted(t, { timeout: TIMEOUT });
  const [peer, job] = await submit('f');
  peer.send('JOB_CREATED', 'H:x:1');
  await job.handle;
  t.mock.timers.tick(TIMEOUT);
  await peer.until('GET_STATUS');
  peer.send('STATUS_RES', 'H:x:1', 1, 1, 0, 0);
  peer.send('WORK_COMPLETE', 'H:x:1', 'done');
  assert.equal(String(await job), 'done');
});

test('a malformed packet closes the client’s connection, and jobs in flight are lost', async (t) => {
  const { submit } = await scripted(t);
  const [peer, job] = await submit('f');
  peer.sendBytes(Buffer.alloc(12, 'x'));
  await assert.rejects(job.result, lostBecauseOf('bad-magic'));
});

test('a caller that reads events slowly applies back-pressure to the server', async (t) => {
  const { submit } = await scripted(t);
  const [peer, job] = await submit('f');
  const events = job[Symbol.asyncIterator]();
  peer.send('JOB_CREATED', 'H:x:1');
  const pieces = 64;
  for (let sent = 0; sent < pieces; sent += 1) peer.send('WORK_DATA', 'H:x:1', Buffer.alloc(1024 * 1024));
  peer.send('WORK_COMPLETE', 'H:x:1', '');
  await events.next();
  // The client buffers little, so the server still has the rest.
  assert.ok((await unsentInTheEnd(peer)) > 16 * 1024 * 1024);
  let count = 1;
  while (!(await events.next()).done) count += 1;
  assert.equal(count, pieces);
  assert.equal(peer.socket.writableLength, 0);
});

test('an aborted job rejects, and the client ignores its packets', async (t) => {
  const { submit } = await scripted(t);
  const controller = new AbortController();
  const [peer, job] = await submit('f', '', { signal: controller.signal });
  controller.abort();
  await assert.rejects(job.result, { code: 'aborted' });
  const [, next] = await submit('f');
  peer.send('JOB_CREATED', 'H:x:1');
  peer.send('JOB_CREATED', 'H:x:2');
  peer.send('WORK_COMPLETE', 'H:x:1', 'not wanted');
  peer.send('WORK_COMPLETE', 'H:x:2', 'done');
  assert.equal(String(await next), 'done');
});

test('a status requested by unique key includes the number of clients', async (t) => {
  const { client, submit } = await scripted(t);
  const [peer] = await submit('f', '', { unique: 'key' });
  peer.send('JOB_CREATED', 'H:x:1');
  const status = client.statusByUnique('key');
  assert.deepEqual(await peer.next(), ['GET_STATUS_UNIQUE', 'key']);
  peer.send('STATUS_RES_UNIQUE', 'key', '1', '1', '3', '4', '2');
  assert.deepEqual(await status, { known: true, running: true, numerator: 3, denominator: 4, clients: 2 });
  await assert.rejects(client.statusByUnique('x'.repeat(64)), { code: 'invalid-argument' });
});

test('WORK_FAIL with the magic of a request, as Python’s server sends it, fails its job', async (t) => {
  const { submit } = await scripted(t);
  const [peer, job] = await submit('f');
  peer.send('JOB_CREATED', 'H:x:1');
  peer.sendBytes(encodePacket('REQ', 'WORK_FAIL', 'H:x:1'));
  await assert.rejects(job.result, { code: 'job-failed' });
});

test('a WORK_STATUS with invalid numbers ends only the events of its job', async (t) => {
  const { submit } = await scripted(t);
  const [peer, odd] = await submit('f');
  const [, other] = await submit('f');
  peer.send('JOB_CREATED', 'H:x:1');
  peer.send('JOB_CREATED', 'H:x:2');
  peer.send('WORK_STATUS', 'H:x:1', '0.5', 1);
  peer.send('WORK_STATUS', 'H:x:2', 1, 2);
  peer.send('WORK_COMPLETE', 'H:x:1', 'done');
  peer.send('WORK_COMPLETE', 'H:x:2', 'done');
  assert.equal(String(await odd), 'done');
  await assert.rejects(odd[Symbol.asyncIterator]().next(), { code: 'invalid-argument' });
  const { value } = await other[Symbol.asyncIterator]().next();
  assert.deepEqual(value, { type: 'status', numerator: 1, denominator: 2 });
  assert.equal(String(await other), 'done');
});

test('a STATUS_RES with invalid numbers fails only its request', async (t) => {
  const { client, submit } = await scripted(t);
  const [peer, job] = await submit('f');
  peer.send('JOB_CREATED', 'H:x:1');
  const status = client.status('H:x:1');
  await peer.until('GET_STATUS');
  peer.send('STATUS_RES', 'H:x:1', 1, 1, '1e5', 2);
  await assert.rejects(status, { name: 'ProtocolError', code: 'invalid-argument' });
  peer.send('WORK_COMPLETE', 'H:x:1', 'done');
  assert.equal(String(await job), 'done');
});

test('a client detects that a server froze after it accepted a job', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { submit } = await scripted(t, { timeout: SHORT_TIMEOUT });
  const [peer, job] = await submit('f');
  peer.send('JOB_CREATED', 'H:x:1');
  await job.handle;
  t.mock.timers.tick(SHORT_TIMEOUT);
  assert.deepEqual(await peer.next(), ['GET_STATUS', 'H:x:1']);
  await assert.rejects(job.result, lostBecauseOf('server-silent'));
});

test('a job that its server no longer knows is lost, and a known job continues', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { client, submit } = await scripted(t, { timeout: TIMEOUT });
  const [peer, forgotten] = await submit('f');
  const running = client.submit('f');
  await peer.until('SUBMIT_JOB');
  peer.send('JOB_CREATED', 'H:x:1');
  peer.send('JOB_CREATED', 'H:x:2');
  await running.handle;
  t.mock.timers.tick(TIMEOUT);
  assert.deepEqual(
    [await peer.next(), await peer.next()],
    [
      ['GET_STATUS', 'H:x:1'],
      ['GET_STATUS', 'H:x:2'],
    ],
  );
  peer.send('STATUS_RES', 'H:x:1', 0, 0, 0, 0);
  peer.send('STATUS_RES', 'H:x:2', 1, 1, 0, 0);
  await assert.rejects(forgotten.result, lostBecauseOf('job-lost'));
  peer.send('WORK_COMPLETE', 'H:x:2', 'done');
  assert.equal(String(await running), 'done');
});

test('a job completes with a result that arrives before the response to its status request', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { submit } = await scripted(t, { timeout: TIMEOUT });
  const [peer, job] = await submit('f');
  peer.send('JOB_CREATED', 'H:x:1');
  await job.handle;
  t.mock.timers.tick(TIMEOUT);
  await peer.until('GET_STATUS');
  peer.send('WORK_COMPLETE', 'H:x:1', 'done');
  peer.send('STATUS_RES', 'H:x:1', 0, 0, 0, 0);
  assert.equal(String(await job), 'done');
});
