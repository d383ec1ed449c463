import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { freePort } from '../../scripts/free-port.ts';

test('each free port is reserved once', async (t) => {
  const ports = await Promise.all(Array.from({ length: 100 }, freePort));
  assert.equal(new Set(ports).size, ports.length);
  const server = createServer();
  t.after(() => server.close());
  await once(server.listen(ports[0], '127.0.0.1'), 'listening');
});
