import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import type { InstanceAddress } from '../../src/index.ts';
import { probeSsh } from '../../src/instance/probe-ssh.ts';

/** A server that does this with each client. */
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

describe('an SSH server is one', () => {
  test('whose first line says so, in one piece or several', async (t) => {
    const address = await listen(t, (client) => {
      client.write('SS');
      setImmediate(() => client.write('H-2.0-OpenSSH_9.2\r\n'));
    });
    await probeSsh(address, signal);
  });

  test('with other lines before', async (t) => {
    await probeSsh(await listen(t, (client) => void client.write('welcome\r\nSSH-2.0-x\r\n')), signal);
  });
});

describe('no SSH server is one', () => {
  test('that hangs up, as what forwards a port does when nobody is behind it', async (t) => {
    const address = await listen(t, (client) => void client.end());
    await assert.rejects(probeSsh(address, signal), /does not speak SSH/);
  });

  test('that speaks of other things for ever', async (t) => {
    const address = await listen(t, (client) => void client.write('no SSH-2.0\r\n'.repeat(2_000)));
    await assert.rejects(probeSsh(address, signal), /does not speak SSH/);
  });

  test('that does not speak until the signal aborts', async (t) => {
    const abort = new AbortController();
    const address = await listen(t, () => abort.abort());
    await assert.rejects(probeSsh(address, abort.signal), { name: 'AbortError' });
  });
});
