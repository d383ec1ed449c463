import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { connect } from 'node:tls';
import { selfSigned } from '../../../../test/fixtures/self-signed.ts';
import { Client } from '../../src/client/client.ts';
import type { Logger } from '../../src/logger.ts';
import { AccessList, type AccessRules } from '../../src/server/access-list.ts';
import { JobServer } from '../../src/server/job-server.ts';
import { Worker } from '../../src/worker/worker.ts';
import { JobServerSite, settled } from '../fixtures/job-server-site.ts';
import { RawPeer } from '../fixtures/raw-peer.ts';

test('an access right covers the functions with a prefix, in bytes', () => {
  const list = new AccessList({ zuul: { submit: ['image-', 'ü'] }, root: { administer: [''] }, idle: {} });
  assert.ok(list.permits('zuul', 'submit', 'image-build:debian'));
  assert.ok(list.permits('zuul', 'submit', Buffer.from('üben').toString('latin1')));
  assert.ok(list.permits('root', 'administer', ''));
  for (const [name, right, functionName] of [
    ['zuul', 'submit', 'image'],
    ['zuul', 'register', 'image-build:debian'],
    ['idle', 'submit', 'image-build:debian'],
    ['constructor', 'submit', 'image-build:debian'],
    [undefined, 'submit', 'image-build:debian'],
  ] as const) {
    assert.ok(!list.permits(name, right, functionName), `${name} ${right} ${functionName}`);
  }
});

test('access rules without client certificates are rejected', async () => {
  const { cert, key } = await selfSigned();
  const refused = { code: 'invalid-argument', message: /requestCert/ };
  for (const tls of [undefined, { cert, key }]) {
    assert.throws(() => new JobServer({ tls, access: {} }), refused);
    assert.throws(() => new JobServer({ tls }).setAccess({}), refused);
  }
});

/** Starts a server with rules for one certificate, and connects with it. */
async function connected(
  t: TestContext,
  name: string,
  access: AccessRules,
): Promise<{ server: JobServer; peer: RawPeer; warnings: string[] }> {
  const warnings: string[] = [];
  const logger: Logger = { debug() {}, info() {}, warn: (text) => warnings.push(text), error: assert.fail };
  const { cert, key } = await selfSigned(name);
  const tls = { cert, key, ca: cert, requestCert: true };
  const { server, port } = await JobServerSite.start(t, { tls, access, logger, onShutdown() {} });
  const socket = connect({ host: '127.0.0.1', port, ca: cert, cert, key });
  t.after(() => socket.destroy());
  await once(socket, 'secureConnect');
  return { server, peer: new RawPeer(socket, 'REQ'), warnings };
}

test('new access rules apply to existing connections, but not to earlier requests', async (t) => {
  const { server, peer } = await connected(t, 'builder', { builder: { submit: ['f'], register: ['f'] } });
  peer.send('CAN_DO', 'f');
  const [, handle = ''] = await peer.ask('SUBMIT_JOB_BG', 'f', '', 'x');
  server.setAccess({ builder: { submit: ['g'] } });
  assert.deepEqual(await peer.ask('GRAB_JOB'), ['JOB_ASSIGN', handle, 'f', 'x']);
  assert.deepEqual((await peer.ask('SUBMIT_JOB_BG', 'f', '', '')).slice(0, 2), ['ERROR', 'ACCESS_DENIED']);
  assert.equal((await peer.ask('SUBMIT_JOB_BG', 'g', '', ''))[0], 'JOB_CREATED');
});

test('denied requests have no effect and are logged', async (t) => {
  const rights = { submit: ['build:'], register: ['build:'], administer: ['build:'] };
  const { peer, warnings } = await connected(t, 'builder', { builder: rights, other: { submit: [''] } });
  peer.send('SUBMIT_JOB_BG', 'other', '', '');
  peer.send('CAN_DO', 'other');
  peer.send('CAN_DO_TIMEOUT', 'other', 1000);
  assert.deepEqual(
    (await settled(peer)).map((reply) => reply.slice(0, 2)),
    Array.from({ length: 3 }, () => ['ERROR', 'ACCESS_DENIED']),
  );
  const commands = ['maxqueue other 1', 'create function other', 'drop function other', 'shutdown', 'status'];
  peer.sendBytes(commands.map((line) => `${line}\r\n`).join(''));
  const denied = ['LINE', 'ERR ACCESS_DENIED Not+allowed+to+administer+this'];
  assert.deepEqual(await settled(peer), [denied, denied, denied, denied, ['LINE', '.']]);
  assert.equal(warnings.length, 7);
  assert.match(warnings[0] ?? '', /^127\.0\.0\.1:\d+ as "builder" may not submit "other"$/);
});

test('requests that the access rules permit succeed', async (t) => {
  const { peer, warnings } = await connected(t, 'builder', {
    builder: { submit: ['f'], register: ['f'], administer: ['f'] },
  });
  const [, handle = ''] = await peer.ask('SUBMIT_JOB_BG', 'f', '', 'x');
  peer.send('CAN_DO', 'f');
  assert.deepEqual(await peer.ask('GRAB_JOB'), ['JOB_ASSIGN', handle, 'f', 'x']);
  peer.sendBytes(`cancel job ${handle}\ncreate function g\n`);
  assert.deepEqual(
    (await settled(peer)).map(([, line]) => line?.split(' ', 2).join(' ')),
    ['OK', 'ERR ACCESS_DENIED'],
  );
  assert.equal(warnings.length, 1);
});

test('a worker that may not register one function runs the jobs of the other', async (t) => {
  const { cert, key } = await selfSigned('builder');
  const site = await JobServerSite.start(t, {
    tls: { cert, key, ca: cert, requestCert: true },
    access: { builder: { submit: [''], register: ['allowed'] } },
  });
  const server = { ...site.address, tls: { ca: cert, cert, key } };
  const worker = new Worker({ servers: [server], timeout: 1000 });
  const client = new Client({ servers: [server] });
  t.after(() => Promise.all([worker.close(), client.close()]));
  worker.setFunctions(new Map(['refused', 'allowed'].map((name) => [name, () => name])));
  assert.equal(String(await client.submit('allowed')), 'allowed');
  assert.equal(String(await client.submit('allowed')), 'allowed');
});

test('cancelling a job requires the right to administer its function', async (t) => {
  const { peer } = await connected(t, 'zuul', { zuul: { submit: [''] } });
  const [, handle = ''] = await peer.ask('SUBMIT_JOB_BG', 'f', '', '');
  peer.sendBytes(`cancel job ${handle}\nstatus\n`);
  const [denied, status] = await settled(peer);
  assert.match(String(denied), /ERR ACCESS_DENIED/);
  assert.deepEqual(status, ['LINE', 'f\t1\t0\t0']);
});

test('an unverified certificate has no rights, even if the server accepts it', async (t) => {
  const [served, forged] = [await selfSigned('server'), await selfSigned('zuul')];
  const tls = { ...served, requestCert: true, rejectUnauthorized: false };
  const { port } = await JobServerSite.start(t, { tls, access: { zuul: { submit: [''] } } });
  const socket = connect({ host: '127.0.0.1', port, ca: served.cert, cert: forged.cert, key: forged.key });
  t.after(() => socket.destroy());
  await once(socket, 'secureConnect');
  const peer = new RawPeer(socket, 'REQ');
  assert.deepEqual((await peer.ask('SUBMIT_JOB', 'f', '', '')).slice(0, 2), ['ERROR', 'ACCESS_DENIED']);
});
