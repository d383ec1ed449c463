import assert from 'node:assert/strict';
import { test } from 'node:test';
import { selfSigned } from '../../../../test/fixtures/self-signed.ts';
import { Client } from '../../src/client/client.ts';
import { GearmanError } from '../../src/errors.ts';
import type { Logger } from '../../src/logger.ts';
import { JobServer } from '../../src/server/job-server.ts';
import { Worker } from '../../src/worker/worker.ts';
import { activeTimers } from '../fixtures/active-timers.ts';
import { JobServerSite, settled } from '../fixtures/job-server-site.ts';

test('a server listens on a free port, and its address contains the port', async () => {
  const server = new JobServer();
  assert.equal(server.address, undefined);
  const address = await server.listen(0);
  assert.equal(address.host, '127.0.0.1');
  assert.ok(address.port > 0);
  assert.deepEqual(server.address, address);
  await server.close();
  assert.equal(server.address, undefined);
});

test('listening on a port in use fails with an error that names the port', async (t) => {
  const { port } = await JobServerSite.start(t);
  const second = new JobServer();
  await assert.rejects(
    second.listen(port),
    (error: unknown) =>
      error instanceof GearmanError &&
      error.code === 'listen-failed' &&
      error.message.includes(`127.0.0.1:${port}`),
  );
  await second.close();
});

test('closing a server sends pending data, closes all connections, and may be repeated', async (t) => {
  const site = await JobServerSite.start(t);
  const [worker, client] = [await site.worker('f'), await site.connect()];
  assert.deepEqual(await client.ask('ECHO_REQ', 'x'), ['ECHO_RES', 'x']);
  await Promise.all([site.server.close(), site.server.close(), worker.closed, client.closed]);
  await site.server.close();
  await assert.rejects(site.connect());
});

test('closing the server or cancelling a job stops the timer of the job’s start time', async (t) => {
  const site = await JobServerSite.start(t);
  const [client, admin] = [await site.connect(), await site.connect()];
  const before = activeTimers();
  const tomorrow = Math.ceil(Date.now() / 1000) + 86_400;
  const [, handle] = await client.ask('SUBMIT_JOB_EPOCH', 'f', '', tomorrow, '');
  await client.ask('SUBMIT_JOB_EPOCH', 'f', '', tomorrow, '');
  assert.equal(activeTimers(), before + 2);
  admin.sendBytes(`cancel job ${handle}\n`);
  assert.deepEqual(await admin.next(), ['LINE', 'OK']);
  assert.equal(activeTimers(), before + 1);
  await site.server.close();
  assert.equal(activeTimers(), before);
});

test('a server declared with `await using` closes at the end of its block', async () => {
  const server = new JobServer();
  await server.listen(0);
  await server[Symbol.asyncDispose]();
  assert.equal(server.address, undefined);
});

test('a request over maxPacketSize is rejected, and later ones are served', async (t) => {
  const site = await JobServerSite.start(t, { maxPacketSize: 1000 });
  const peer = await site.connect();
  assert.equal((await peer.ask('ECHO_REQ', 'x'.repeat(988)))[0], 'ECHO_RES');
  assert.deepEqual((await peer.ask('ECHO_REQ', 'x'.repeat(989))).slice(0, 2), [
    'ERROR',
    'ARGUMENT_TOO_LARGE',
  ]);
  assert.equal((await peer.ask('ECHO_REQ', 'after it'))[1], 'after it');
});

test('a client that does not read is disconnected, and others are served', async (t) => {
  const warnings: string[] = [];
  const logger: Logger = {
    debug() {},
    info() {},
    warn: (message) => warnings.push(message),
    error: assert.fail,
  };
  const limit = 8 * 1024 * 1024;
  const site = await JobServerSite.start(t, { logger, maxOutputBuffer: limit });
  const worker = await site.worker('f');
  const [slow, handle] = await site.submit('f');
  const [patient, second] = await site.submit('f');
  await worker.ask('GRAB_JOB');
  await worker.ask('GRAB_JOB');
  slow.socket.pause();
  // Exceeds the limit and the socket buffers.
  for (let sent = 0; sent < 4; sent += 1) {
    worker.send('WORK_DATA', handle, Buffer.alloc(limit));
    await settled(worker);
  }
  slow.socket.resume();
  await slow.closed;
  assert.equal(warnings.length, 1);
  assert.match(warnings.join(), /127\.0\.0\.1:\d+ does not read/);
  worker.send('WORK_COMPLETE', handle, 'for nobody');
  worker.send('WORK_COMPLETE', second, 'x');
  assert.deepEqual(await settled(worker), []);
  assert.deepEqual(await patient.next(), ['WORK_COMPLETE', second, 'x']);
});

test('a packet larger than maxOutputBuffer reaches a client that reads', async (t) => {
  const site = await JobServerSite.start(t, { maxOutputBuffer: 1000 });
  const client = await site.connect();
  const data = 'x'.repeat(4 * 1024 * 1024);
  assert.deepEqual(await client.ask('ECHO_REQ', data), ['ECHO_RES', data]);
});

test('closing a server also closes connections in a TLS handshake', async (t) => {
  const site = await JobServerSite.start(t, { tls: await selfSigned() });
  const mute = await site.connect();
  await Promise.all([site.server.close(), mute.closed]);
});

test('a server with TLS rejects clients without a certificate', async (t) => {
  const { cert, key } = await selfSigned();
  const site = await JobServerSite.start(t, { tls: { cert, key, ca: cert, requestCert: true } });
  const server = { host: '127.0.0.1', port: site.port, tls: { ca: cert, cert, key } };
  const worker = new Worker({ servers: [server] });
  t.after(() => worker.close());
  worker.add('reverse', ({ payload }) => payload.toReversed());
  const client = new Client({ servers: [server] });
  t.after(() => client.close());
  assert.equal(String(await client.submit('reverse', 'abc')), 'cba');

  const stranger = new Client({ servers: [{ ...server, tls: { ca: cert } }] });
  t.after(() => stranger.close());
  await assert.rejects(stranger.submit('reverse', 'abc').result, GearmanError);
  const trusting = new Client({ servers: [{ ...server, tls: {} }] });
  t.after(() => trusting.close());
  await assert.rejects(trusting.submit('reverse', 'abc').result, { code: 'connect-failed' });
});
