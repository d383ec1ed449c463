import { rejects } from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { askServers } from '../../src/site/ask-servers.ts';

test('the error for a job server that hangs says that it accepts connections, and suggests to restart it', async (t) => {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => sockets.add(socket.on('error', () => {})));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const address = `127.0.0.1:${port}`;
  const query = askServers([{ host: '127.0.0.1', port }], (admin) => admin.status(), undefined, 50);
  await rejects(query, {
    code: 'connect-failed',
    message: `no job server responds at ${address}: ${address} accepts connections, but does not reply; restart it if it hangs`,
  });
});
