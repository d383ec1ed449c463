import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConnectionError } from '../../src/errors.ts';
import { ServerKnowledge } from '../../src/worker/server-knowledge.ts';

const silence = new ConnectionError('server-silent', 'the server did not reply to GRAB_JOB');
const loss = new ConnectionError('connection-lost', 'the server closed the connection');

test('the time limit for a server doubles with each silent connection, up to 16 times', () => {
  const server = new ServerKnowledge(100);
  const limits = Array.from({ length: 6 }, () => {
    const timeout = server.timeoutFor(0);
    server.closed(silence);
    return timeout;
  });
  assert.deepEqual(limits, [100, 200, 400, 800, 1600, 1600]);
});

test('the time limit for a server is reset by a connection that ends otherwise', () => {
  const server = new ServerKnowledge(100);
  server.closed(silence);
  server.closed(loss);
  assert.equal(server.timeoutFor(0), 100);
});

test('the time limit for a server grows with the number of functions, up to 16 times', () => {
  const server = new ServerKnowledge(100);
  assert.deepEqual(
    [0, 10, 4000, 100_000].map((functions) => server.timeoutFor(functions)),
    [100, 101, 500, 1600],
  );
});
