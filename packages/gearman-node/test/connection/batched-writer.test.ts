import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { BatchedWriter } from '../../src/connection/batched-writer.ts';
import { socketPair } from '../fixtures/socket-pair.ts';

test('packets sent in one callback and its promise reactions leave in one write', async () => {
  const writes: string[] = [];
  const { promise: written, resolve } = Promise.withResolvers<void>();
  const socket = new Writable({
    writev(chunks, done) {
      writes.push(Buffer.concat(chunks.map(({ chunk }) => chunk as Buffer)).toString('latin1'));
      done();
      resolve();
    },
  });
  const writer = new BatchedWriter(socket as Socket, 'REQ');
  // From a callback of the event loop, as in production.
  setImmediate(() => {
    writer.send('CAN_DO', 'a');
    void Promise.resolve()
      .then(() => writer.send('CAN_DO', 'b'))
      .then(() => writer.sendBytes(Buffer.from('status\n')));
  });
  await written;
  assert.deepEqual(writes, ['\0REQ\0\0\0\x01\0\0\0\x01a\0REQ\0\0\0\x01\0\0\0\x01bstatus\n']);
});

test('a full batch of packets is written at once', async () => {
  const [near, far] = await socketPair();
  const writer = new BatchedWriter(near, 'REQ');
  writer.send('ECHO_REQ', 'x'.repeat(1000));
  assert.equal(near.bytesWritten, 0);
  writer.send('ECHO_REQ', 'x'.repeat(100_000));
  assert.equal(near.bytesWritten, 2 * 12 + 101_000);
  near.destroy();
  far.destroy();
});

test('the pending byte count includes the batch and the socket’s buffer', async () => {
  const [near, far] = await socketPair();
  far.pause();
  const writer = new BatchedWriter(near, 'REQ');
  writer.send('ECHO_REQ', 'x');
  assert.equal(writer.pendingBytes, 13);
  assert.equal(writer.isFull, false);
  // More than the buffers of two sockets.
  const payload = Buffer.alloc(32 * 1024 * 1024);
  writer.send('ECHO_REQ', payload);
  assert.equal(writer.isFull, true);
  assert.ok(writer.pendingBytes >= payload.length);
  near.destroy();
  far.destroy();
});

test('a packet written to a closed socket is dropped without an error', async () => {
  const [near, far] = await socketPair();
  const writer = new BatchedWriter(near, 'REQ');
  near.on('error', () => assert.fail('an error'));
  near.destroy();
  writer.send('PRE_SLEEP');
  writer.flush();
  assert.equal(writer.pendingBytes, 0);
  far.destroy();
});
