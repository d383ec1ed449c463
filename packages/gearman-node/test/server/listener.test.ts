import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { type ConnectionOptions, connect } from 'node:tls';
import { selfSigned } from '../../../../test/fixtures/self-signed.ts';
import type { Logger } from '../../src/logger.ts';
import { JobServer } from '../../src/server/job-server.ts';
import { JobServerSite } from '../fixtures/job-server-site.ts';
import { RawPeer } from '../fixtures/raw-peer.ts';

/** Opens a TLS connection, and returns it with the server's certificate. */
async function connectTls(
  t: TestContext,
  port: number,
  options: ConnectionOptions,
): Promise<[peer: RawPeer, name: string | undefined]> {
  const socket = connect({ host: '127.0.0.1', port, ...options });
  t.after(() => socket.destroy());
  await once(socket, 'secureConnect');
  const name = socket.getPeerCertificate().subject.CN;
  return [new RawPeer(socket, 'REQ'), Array.isArray(name) ? name.join() : name];
}

/** Resolves with the first warning. */
function firstWarning(): { readonly logger: Logger; readonly warning: Promise<string> } {
  const { promise: warning, resolve: warn } = Promise.withResolvers<string>();
  return { logger: { debug() {}, info() {}, warn, error: assert.fail }, warning };
}

test('new connections use a renewed certificate, and existing ones stay open', async (t) => {
  const [former, renewed] = [await selfSigned('former'), await selfSigned('renewed')];
  const site = await JobServerSite.start(t, { tls: former });
  const [first, firstName] = await connectTls(t, site.port, { ca: former.cert });
  assert.equal(firstName, 'former');
  site.server.setSecureContext(renewed);
  const [second, secondName] = await connectTls(t, site.port, { ca: renewed.cert });
  assert.equal(secondName, 'renewed');
  for (const peer of [first, second]) {
    assert.deepEqual(await peer.ask('ECHO_REQ', 'x'), ['ECHO_RES', 'x']);
  }
});

test('an invalid certificate is rejected, and the server keeps the previous one', async (t) => {
  const tls = await selfSigned('former');
  const site = await JobServerSite.start(t, { tls });
  assert.throws(() => site.server.setSecureContext({ cert: 'nonsense', key: tls.key }), {
    code: 'invalid-argument',
    message: /the certificate or its key cannot be used/,
  });
  assert.throws(() => new JobServer({ tls: { cert: 'nonsense', key: tls.key } }), {
    code: 'invalid-argument',
  });
  assert.equal((await connectTls(t, site.port, { ca: tls.cert }))[1], 'former');
});

test('a certificate is rejected for a server without TLS', async (t) => {
  const { server } = await JobServerSite.start(t);
  assert.throws(() => server.setSecureContext({}), { code: 'invalid-argument', message: /option tls/ });
});

test('a TLS handshake that takes too long closes the connection', async (t) => {
  const { logger, warning } = firstWarning();
  const tls = { ...(await selfSigned()), handshakeTimeout: 50 };
  const site = await JobServerSite.start(t, { tls, logger });
  const mute = await site.connect();
  await mute.closed;
  assert.match(await warning, /a TLS handshake with (127\.0\.0\.1:\d+|a peer) failed: .*timeout/);
});

test('a connection over maxConnections is closed until another one ends', async (t) => {
  const { logger, warning } = firstWarning();
  const site = await JobServerSite.start(t, { maxConnections: 2, logger });
  const [first, second] = [await site.connect(), await site.connect()];
  assert.deepEqual(await first.ask('ECHO_REQ', 'x'), ['ECHO_RES', 'x']);
  assert.deepEqual(await second.ask('ECHO_REQ', 'x'), ['ECHO_RES', 'x']);
  const third = await site.connect();
  await third.closed;
  assert.match(
    await warning,
    /a connection from 127\.0\.0\.1:\d+ was rejected: the limit of 2 connections is reached/,
  );
  first.socket.end();
  await first.closed;
  const fourth = await site.connect();
  assert.deepEqual(await fourth.ask('ECHO_REQ', 'x'), ['ECHO_RES', 'x']);
});

test('draining a server accepts no connections and jobs, and waits for running jobs unless aborted', async (t) => {
  const site = await JobServerSite.start(t);
  const worker = await site.worker('f');
  const [client, handle] = await site.submit('f');
  await worker.ask('GRAB_JOB');
  await assert.rejects(site.server.drain(AbortSignal.abort()), { code: 'aborted' });
  const drained = site.server.drain();
  await assert.rejects(site.connect());
  assert.deepEqual((await client.ask('SUBMIT_JOB', 'f', '', '')).slice(0, 2), ['ERROR', 'QUEUE_ERROR']);
  worker.send('WORK_COMPLETE', handle, 'done');
  await drained;
  assert.deepEqual(await client.next(), ['WORK_COMPLETE', handle, 'done']);
});

test('listening twice or on an invalid port fails with a typed error, and the server keeps running', async (t) => {
  const site = await JobServerSite.start(t);
  const again = { code: 'listen-failed', message: new RegExp(`already listens on 127.0.0.1:${site.port}`) };
  await assert.rejects(site.server.listen(0), again);
  const idle = new JobServer();
  for (const port of [99_999, -1, 1.5, Number.NaN, '4730' as never]) {
    await assert.rejects(idle.listen(port), { code: 'invalid-argument' });
  }
  await idle.close();
  const peer = await site.connect();
  assert.deepEqual(await peer.ask('ECHO_REQ', 'x'), ['ECHO_RES', 'x']);
});

test('the second of two concurrent listen calls fails', async (t) => {
  const server = new JobServer();
  t.after(() => server.close());
  const [first, second] = await Promise.allSettled([server.listen(0), server.listen(0)]);
  assert.equal(first.status, 'fulfilled');
  assert.equal(second.status === 'rejected' && second.reason.code, 'listen-failed');
  await server.close();
  await server.listen(0);
});

test('running out of file descriptors for connections is logged', async (t) => {
  const program = join(import.meta.dirname, '../fixtures/logging-server.ts');
  const shell = ['-c', 'ulimit -n 84 && exec "$@"', 'sh', process.execPath, program];
  const server = spawn('sh', shell, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(server, 'close');
  t.after(async () => {
    server.kill();
    await ended;
  });
  const lines = createInterface(server.stdout)[Symbol.asyncIterator]();
  const port = Number((await lines.next()).value);
  const first = await RawPeer.connect(port);
  assert.deepEqual(await first.ask('ECHO_REQ', 'x'), ['ECHO_RES', 'x'], 'it is accepted before the others');
  const others = await Promise.all(Array.from({ length: 40 }, () => RawPeer.connect(port)));
  t.after(() => Promise.all([first, ...others].map((peer) => peer.close())));
  assert.match(
    String((await lines.next()).value),
    /was rejected: the limit of 20 connections is reached; .* ulimit -n/,
  );
  assert.deepEqual(await first.ask('ECHO_REQ', 'y'), ['ECHO_RES', 'y']);
});

test('the log names a peer that violates the protocol', async (t) => {
  const { logger, warning } = firstWarning();
  const site = await JobServerSite.start(t, { logger });
  const peer = await site.connect();
  const { localPort } = peer.socket;
  peer.sendBytes('\0XYZ\0\0\0\0\0\0\0\0');
  await peer.closed;
  assert.match(await warning, new RegExp(`^127\\.0\\.0\\.1:${localPort}: a packet begins with`));
});
