import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import type { InstanceAddress } from '@nodepool-builder/image-builder';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import { probeSsh } from '../../src/ssh/ssh-login.ts';

/** Starts a server that calls `serve` for each client. */
async function listen(t: TestContext, serve: (client: Socket) => void): Promise<InstanceAddress> {
  const clients = new Set<Socket>();
  const server = createServer((client) => {
    clients.add(client);
    client.on('error', () => {});
    serve(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  undoAfter(t, () => {
    for (const client of clients) client.destroy();
    server.close();
  });
  return { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
}

const { signal } = new AbortController();

describe('accepted SSH servers', () => {
  test('an SSH server is detected if its first line is an identification, in one piece or several', async (t) => {
    const address = await listen(t, (client) => {
      client.write('SS');
      setImmediate(() => client.write('H-2.0-OpenSSH_9.2\r\n'));
    });
    await probeSsh(address, signal);
  });

  test('an SSH server is detected if other lines precede its identification', async (t) => {
    await probeSsh(await listen(t, (client) => void client.write('welcome\r\nSSH-2.0-x\r\n')), signal);
  });
});

describe('rejected SSH servers', () => {
  test('a server that hangs up, like a port forwarder without a target, is not an SSH server', async (t) => {
    const address = await listen(t, (client) => void client.end());
    await assert.rejects(probeSsh(address, signal), /does not speak SSH/);
  });

  test('a server that keeps sending other data is not an SSH server', async (t) => {
    const address = await listen(t, (client) => void client.write('no SSH-2.0\r\n'.repeat(2_000)));
    await assert.rejects(probeSsh(address, signal), /does not speak SSH/);
  });

  test('the probe of a silent SSH server ends when the signal aborts', async (t) => {
    const abort = new AbortController();
    const address = await listen(t, () => abort.abort());
    await assert.rejects(probeSsh(address, abort.signal), { name: 'AbortError' });
  });
});
