import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Admin } from '../../src/admin/admin.ts';
import { ServerError } from '../../src/errors.ts';
import { VERSION } from '../../src/server/admin-replies.ts';
import { JobServerSite } from '../fixtures/job-server-site.ts';
import { ScriptedServer } from '../fixtures/scripted-server.ts';

async function administered(t: TestContext): Promise<{ site: JobServerSite; admin: Admin }> {
  const site = await JobServerSite.start(t);
  const admin = new Admin(site.address);
  t.after(() => admin.close());
  return { site, admin };
}

/** An admin client and its job server, whose side the test plays. */
async function scripted(t: TestContext, timeout = 60_000): Promise<{ server: ScriptedServer; admin: Admin }> {
  const server = await ScriptedServer.listen();
  const admin = new Admin(server.address, { timeout });
  t.after(() => Promise.all([server.close(), admin.close()]));
  return { server, admin };
}

test('the embedded server supports each admin command', async (t) => {
  const { site, admin } = await administered(t);
  const worker = await site.worker('f');
  worker.send('SET_CLIENT_ID', 'me');
  const [client, handle] = await site.submit('f');
  await worker.ask('GRAB_JOB');
  await client.ask('SUBMIT_JOB_LOW_BG', 'f', 'key', '');

  assert.deepEqual(await admin.status(), [{ name: 'f', total: 2, running: 1, availableWorkers: 1 }]);
  assert.deepEqual(await admin.priorityStatus(), [
    { name: 'f', high: 0, normal: 0, low: 1, availableWorkers: 1 },
  ]);
  assert.deepEqual((await admin.workers())[0], { fd: 1, ip: '127.0.0.1', clientId: 'me', functions: ['f'] });
  assert.deepEqual((await admin.showJobs())[0], { handle, retries: 0, ignored: false, background: false });
  assert.deepEqual(await admin.showUniqueJobs(), ['', 'key']);
  assert.equal(await admin.version(), VERSION);
  assert.equal(await admin.verbose(), 'ERROR');
  assert.equal(await admin.pid(), process.pid);
  await admin.cancelJob(handle);
  assert.deepEqual(await client.next(), ['WORK_FAIL', handle]);
  await admin.createFunction('g');
  await admin.maxQueue('g', 1);
  assert.equal((await admin.status()).length, 2);
  await admin.dropFunction('g');
  assert.equal((await admin.status()).length, 1);
});

test('a rejected admin command throws a ServerError, and the next command works', async (t) => {
  const { admin } = await administered(t);
  await assert.rejects(
    admin.cancelJob('H:x:1'),
    (error: unknown) => error instanceof ServerError && error.serverCode === 'UNKNOWN_JOB',
  );
  await assert.rejects(admin.shutdown(), { serverCode: 'UNKNOWN_COMMAND' });
  assert.deepEqual(await admin.status(), []);
});

test('concurrent admin commands get their own replies', async (t) => {
  const { admin } = await administered(t);
  const [version, status, failure, workers] = await Promise.allSettled([
    admin.version(),
    admin.status(),
    admin.dropFunction('f'),
    admin.workers(),
  ]);
  assert.deepEqual(
    [version.status, status.status, failure.status, workers.status],
    ['fulfilled', 'fulfilled', 'rejected', 'fulfilled'],
  );
});

test('an admin reply may arrive in parts, with either line ending', async (t) => {
  const { server, admin } = await scripted(t);
  const status = admin.status();
  const peer = await server.accept();
  assert.deepEqual(await peer.next(), ['LINE', 'status']);
  for (const byte of 'a\t1\t0\t2\r\ngröße\t0\t0\t0\n.\r\n') {
    peer.sendBytes(Buffer.from(byte));
    await new Promise(setImmediate);
  }
  assert.deepEqual(
    (await status).map(({ name }) => name),
    ['a', 'größe'],
  );
});

test('a function name in an admin reply may look like an error or contain a dot', async (t) => {
  const { server, admin } = await scripted(t);
  const status = admin.status();
  (await server.accept()).sendBytes('ERR x\t1\t0\t0\n..\t0\t0\t0\n.\n');
  assert.deepEqual(
    (await status).map(({ name }) => name),
    ['ERR x', '..'],
  );
});

test('an admin command without a reply fails with server-silent, and the next command reconnects', async (t) => {
  const { server, admin } = await scripted(t, 2000);
  await assert.rejects(admin.version(), { code: 'server-silent' });
  await (await server.accept()).closed;
  const again = admin.version();
  (await server.accept()).sendBytes('OK 1.1.20\n');
  assert.equal(await again, '1.1.20');
});

test('a closed admin connection rejects pending commands, and the next command reconnects', async (t) => {
  const { server, admin } = await scripted(t);
  const waiting = [admin.version(), admin.status()];
  (await server.accept()).socket.end();
  for (const each of waiting) await assert.rejects(each, { code: 'connection-lost' });
  const again = admin.version();
  (await server.accept()).sendBytes('OK 1\n');
  assert.equal(await again, '1');
});

test('an admin command to an unreachable server fails with connect-failed', async () => {
  const server = await ScriptedServer.listen();
  const { address } = server;
  await server.close();
  const admin = new Admin(address);
  await assert.rejects(admin.status(), { code: 'connect-failed' });
  await admin.close();
});

test('closing an admin client rejects pending and later commands', async (t) => {
  const { server, admin } = await scripted(t);
  const waiting = admin.version();
  await (await server.accept()).next();
  await admin.close();
  await assert.rejects(waiting, { code: 'closed' });
  await assert.rejects(admin.version(), { code: 'closed' });
  await admin.close();
});

test('the admin client rejects arguments that the protocol cannot transmit before it sends a packet', async (t) => {
  const { admin } = await administered(t);
  for (const name of ['', 'a b', 'x'.repeat(513)]) {
    await assert.rejects(admin.createFunction(name), { code: 'invalid-argument' });
  }
  await assert.rejects(admin.cancelJob('H x'), { code: 'invalid-argument' });
});

test('a malformed admin reply is rejected, and the next command works', async (t) => {
  const { server, admin } = await scripted(t);
  const status = admin.status();
  const peer = await server.accept();
  peer.sendBytes('f\tmany\t1\t2\n.\n');
  await assert.rejects(status, { name: 'ProtocolError', code: 'reply-malformed', message: /f\\tmany/ });
  const queue = admin.maxQueue('f', 1);
  peer.sendBytes('NO\r\n');
  await assert.rejects(queue, { code: 'reply-malformed' });
  const pid = admin.pid();
  peer.sendBytes('OK 12\n');
  assert.equal(await pid, 12);
});

test('an endless line or list closes the admin connection', async (t) => {
  for (const piece of ['x'.repeat(1000), 'f\t1\t1\t1\n', '\n']) {
    const server = await ScriptedServer.listen();
    const admin = new Admin(server.address, { maxReplySize: 10_000 });
    t.after(() => Promise.all([server.close(), admin.close()]));
    const [status, waiting] = [admin.status(), admin.version()];
    const peer = await server.accept();
    const refused = Promise.all(
      [status, waiting].map((reply) =>
        assert.rejects(reply, { name: 'ProtocolError', code: 'reply-too-large', message: /maxReplySize/ }),
      ),
    );
    for (let sent = 0; sent < 20_000; sent += piece.length) peer.sendBytes(piece);
    await refused;
    await peer.closed;
  }
});

test('the size limit applies to each admin reply separately', async (t) => {
  const server = await ScriptedServer.listen();
  const admin = new Admin(server.address, { maxReplySize: 10_000 });
  t.after(() => Promise.all([server.close(), admin.close()]));
  const replies = Array.from({ length: 5 }, () => admin.showUniqueJobs());
  const peer = await server.accept();
  const keys = Array.from({ length: 50 }, (_, number) => `${number}`.padEnd(100));
  peer.sendBytes(`${keys.join('\n')}\n.\n`.repeat(replies.length));
  for (const reply of replies) assert.deepEqual(await reply, keys);
});

test('a long admin line that begins like an error is parsed in linear time', async (t) => {
  const { server, admin } = await scripted(t);
  const status = admin.status();
  const peer = await server.accept();
  const line = `ERR ${'x'.repeat(200_000)}`;
  const start = performance.now();
  peer.sendBytes(`${line}\t1\t0\t0\n.\n`);
  assert.deepEqual(await status, [{ name: line, total: 1, running: 0, availableWorkers: 0 }]);
  assert.ok(performance.now() - start < 10_000);
});

test('the admin client parses a list of 100,000 functions over many turns of the event loop', async (t) => {
  const { server, admin } = await scripted(t);
  let [inOneTurn, most] = [0, 0];
  const status = admin.status(() => {
    setImmediate(() => {
      inOneTurn = 0;
    });
    inOneTurn += 1;
    most = Math.max(most, inOneTurn);
    return false;
  });
  const peer = await server.accept();
  const line = `image-upload:${'x'.repeat(40)}\t0\t0\t1\n`;
  peer.sendBytes(`${line.repeat(100_000)}.\n`);
  await status;
  assert.ok(most * line.length <= 2 * 65_536, `${most} lines in one turn`);
});
