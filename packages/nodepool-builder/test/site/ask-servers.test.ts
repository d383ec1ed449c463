import { rejects } from 'node:assert/strict';
import { once } from 'node:events';
import { utimes, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { JobServer } from '@nodepool-builder/gearman-node';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { askServers, requireBuilderOf } from '../../src/site/ask-servers.ts';

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

test('a file that was changed in the future does not delay the error for a disk image that nobody builds', {
  timeout: 10_000,
}, async (t) => {
  const jobServer = new JobServer();
  const { host, port } = await jobServer.listen(0);
  t.after(() => jobServer.close());
  const file = join(temporaryDirectory(t), 'nodepool.yaml');
  await writeFile(file, '');
  const tomorrow = new Date(Date.now() + 86_400_000);
  await utimes(file, tomorrow, tomorrow);
  await rejects(requireBuilderOf('debian', [{ host, port }], file), { exitReason: 'not-found' });
});
