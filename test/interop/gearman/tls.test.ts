// Only in test:all: it needs stunnel.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { Admin, Client, GearmanError, type ServerAddress, Worker } from '@nodepool-builder/gearman-node';
import { startGearmand } from '../../fixtures/gearmand.ts';
import { selfSigned } from '../../fixtures/self-signed.ts';
import { type Certificate, startStunnel } from '../../fixtures/stunnel.ts';
import { site } from './site.ts';

/** TLS options of gearmand. Debian's build ignores them, even if the files are missing. */
const SSL = ['--ssl', ...['ca-file', 'certificate', 'key'].map((file) => `--ssl-${file}=/missing.pem`)];

/** Starts gearmand behind stunnel, with the certificates of its peers. */
async function secured(t: TestContext): Promise<{
  readonly address: { readonly host: string; readonly port: number };
  readonly ca: string;
  readonly clients: readonly [Certificate, Certificate];
  readonly restart: () => Promise<void>;
}> {
  const [own, ...clients] = await Promise.all([selfSigned(), selfSigned(), selfSigned()]);
  const gearmand = await startGearmand();
  t.after(() => gearmand.stop());
  const stunnel = await startStunnel(gearmand.port, own, clients);
  t.after(() => stunnel.stop());
  const address = { host: '127.0.0.1', port: stunnel.port };
  return { address, ca: own.cert, clients, restart: () => gearmand.restart() };
}

function clientOf(t: TestContext, address: ServerAddress): Client {
  const client = new Client({ servers: [address] });
  t.after(() => client.close());
  return client;
}

/** With TLS 1.3, a client may notice its rejection only after its first packet. */
const refused = (error: unknown): boolean =>
  error instanceof GearmanError && (error.code === 'connect-failed' || error.code === 'job-lost');

test('a client, worker and admin with certificates work with gearmand behind stunnel', async (t) => {
  const { address, ca, clients } = await secured(t);
  const server = { ...address, tls: { ...clients[0], ca } };
  const worker = new Worker({ servers: [server] });
  t.after(() => worker.close());
  const payload = Buffer.alloc(1024 * 1024, '\0payload');
  worker.add('echo', (job) => job.payload);
  assert.deepEqual(await clientOf(t, server).submit('echo', payload), payload);
  const admin = new Admin(server);
  t.after(() => admin.close());
  assert.equal((await admin.status())[0]?.name, 'echo');
});

test('a TLS server accepts no job without a certificate or with an unknown one', async (t) => {
  const { address, ca } = await secured(t);
  const stranger = await selfSigned();
  for (const tls of [{ ca }, { ...stranger, ca }]) {
    await assert.rejects(clientOf(t, { ...address, tls }).submit('f').handle, refused);
  }
});

test('a client submits nothing to a TLS server with a wrong host name', async (t) => {
  const { address, ca, clients } = await secured(t);
  const tls = { ...clients[0], ca, servername: 'jobs.example.org' };
  await assert.rejects(clientOf(t, { ...address, tls }).submit('f').handle, { code: 'connect-failed' });
});

test('no client, worker or admin with TLS falls back to plain text with Debian’s gearmand --ssl', async (t) => {
  const gearmand = await startGearmand(...SSL);
  t.after(() => gearmand.stop());
  const { address, admin, connect } = site(t, gearmand.port);
  assert.match(await admin.version(), /^\d+\.\d+/);
  assert.deepEqual(await (await connect()).ask('ECHO_REQ', 'in the clear'), ['ECHO_RES', 'in the clear']);

  const secure = { ...address, tls: {} };
  await assert.rejects(clientOf(t, secure).submit('f').handle, { code: 'connect-failed' });
  const operator = new Admin(secure);
  t.after(() => operator.close());
  await assert.rejects(operator.status(), { code: 'connect-failed' });
  const warned = Promise.withResolvers<string>();
  const logger = { debug() {}, info() {}, warn: warned.resolve, error() {} };
  const worker = new Worker({ servers: [secure], logger });
  t.after(() => worker.close());
  worker.add('f', () => '');
  assert.match(await warned.promise, /^cannot connect to the job server/);
  assert.deepEqual(await admin.status(), []);
});

test('a worker uses a renewed certificate for its next connection and keeps the present one', async (t) => {
  const { address, ca, clients, restart } = await secured(t);
  let certificate: Certificate = clients[0];
  const used: Certificate[] = [];
  const tls = () => {
    used.push(certificate);
    return { ...certificate, ca };
  };
  const worker = new Worker({ servers: [{ ...address, tls }], reconnect: { minDelay: 10, maxDelay: 50 } });
  t.after(() => worker.close());
  worker.add('f', () => 'done');
  await once(worker, 'connect');
  certificate = clients[1];
  const client = clientOf(t, { ...address, tls: { ...clients[0], ca } });
  assert.equal(String(await client.submit('f')), 'done');
  assert.deepEqual(used, [clients[0]]);

  const lost = once(worker, 'disconnect');
  await restart();
  await lost;
  assert.equal(String(await client.submit('f', '', { onServerLost: 'resubmit' })), 'done');
  assert.equal(used.at(-1), clients[1]);
});
