/* oxlint-disable unicorn/require-post-message-target-origin -- that is for windows, this is a thread */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { it } from 'node:test';
import { Worker } from 'node:worker_threads';
import { keepReadingAfterEpipe } from '../../src/session/streams.ts';

/**
 * Accepts one connection, reports the first bytes, and on a message responds and resets the connection. Then it sets
 * the flag.
 */
const SERVER = `
  const { createServer } = require('node:net');
  const { parentPort, workerData: flag } = require('node:worker_threads');
  const server = createServer((socket) => {
    socket.once('readable', () => parentPort.postMessage('bytes'));
    parentPort.once('message', () => socket.write('the response', () => socket.resetAndDestroy()));
    socket.on('close', () => {
      Atomics.store(flag, 0, 1);
      Atomics.notify(flag, 0);
      server.close();
    });
  }).listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));
`;

it('a response is read although the connection was reset before the next write', async () => {
  const flag = new Int32Array(new SharedArrayBuffer(4));
  const server = new Worker(SERVER, { eval: true, workerData: flag });
  const [port] = (await once(server, 'message')) as [number];
  const socket = connect(port, '127.0.0.1').setEncoding('utf8');
  keepReadingAfterEpipe(socket);
  socket.write('first');
  await once(server, 'message');
  server.postMessage('response');
  // nothing is read meanwhile, so that the write below fails before the response is read
  Atomics.wait(flag, 0, 0);
  socket.write('second');
  let response = '';
  for await (const text of socket) response += text;
  assert.equal(response, 'the response');
  socket.destroy();
});
