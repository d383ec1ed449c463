import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import type { Packet } from '../../src/codec/packet.ts';
import { Connection, type ConnectionOptions } from '../../src/connection/connection.ts';
import { GearmanError } from '../../src/errors.ts';
import { encodePacket } from '../fixtures/encode-packet.ts';
import { RawPeer } from '../fixtures/raw-peer.ts';
import { socketPair } from '../fixtures/socket-pair.ts';

/** A connection, its other end, and the reason with which it closes. */
async function connected(
  options: Partial<ConnectionOptions> = {},
): Promise<{ connection: Connection; peer: RawPeer; closed: Promise<GearmanError> }> {
  const [near, far] = await socketPair();
  const { promise: closed, resolve } = Promise.withResolvers<GearmanError>();
  const connection = new Connection(near, {
    magic: 'REQ',
    peer: 'peer:1',
    onPacket: () => {},
    ...options,
    onClose: resolve,
  });
  return { connection, peer: new RawPeer(far, 'RES'), closed };
}

test('a connection carries packets in both directions', async () => {
  const received = Promise.withResolvers<Packet>();
  const { connection, peer } = await connected({ onPacket: received.resolve });
  connection.send('ECHO_REQ', 'ping');
  assert.deepEqual(await peer.next(), ['ECHO_REQ', 'ping']);
  peer.send('ECHO_RES', 'pong');
  assert.equal((await received.promise).text('data'), 'pong');
  await peer.close();
});

test('a connection that its peer ends or resets closes with connection-lost', async () => {
  const ended = await connected();
  ended.peer.socket.end();
  const error = await ended.closed;
  assert.deepEqual([error.code, error.retriable], ['connection-lost', true]);
  assert.match(error.message, /peer:1/);
  assert.equal(ended.connection.isOpen, false);

  const reset = await connected();
  reset.peer.socket.resetAndDestroy();
  assert.equal((await reset.closed).code, 'connection-lost');
});

test('a protocol error destroys the connection, and no later packet is passed on', async () => {
  const names: string[] = [];
  const { peer, closed } = await connected({ onPacket: (packet) => names.push(packet.name) });
  peer.sendBytes(
    Buffer.concat([encodePacket('RES', 'NOOP'), Buffer.alloc(12, 'x'), encodePacket('RES', 'NO_JOB')]),
  );
  assert.equal((await closed).code, 'bad-magic');
  await peer.closed;
  assert.deepEqual(names, ['NOOP']);
});

test('an error in a packet handler closes only the connection, with an internal error', async () => {
  const fault = new TypeError('oops');
  const { peer, closed } = await connected({
    onPacket: () => {
      throw fault;
    },
  });
  peer.send('NOOP');
  const error = await closed;
  assert.deepEqual([error.code, error.cause], ['internal', fault]);
  await peer.closed;
});

test('closing a connection sends pending data, ends it, and ignores further input', async () => {
  const names: string[] = [];
  const { connection, peer, closed } = await connected({ onPacket: (packet) => names.push(packet.name) });
  connection.send('PRE_SLEEP');
  const closing = connection.close();
  peer.send('NOOP');
  assert.deepEqual(await peer.next(), ['PRE_SLEEP']);
  await closing;
  assert.equal((await closed).code, 'closed');
  assert.deepEqual(names, []);
});

test('a connection may be closed twice, and after its peer has closed it', async () => {
  const { connection, peer, closed } = await connected();
  peer.socket.end();
  await closed;
  await Promise.all([connection.close(), connection.close()]);
  connection.send('PRE_SLEEP');
});

test('a connection is destroyed on close if its peer does not close its side', async (t) => {
  const [near, far] = await socketPair({ allowHalfOpen: true });
  const { promise: closed, resolve } = Promise.withResolvers<GearmanError>();
  const connection = new Connection(near, { magic: 'REQ', peer: 'p', onPacket: () => {}, onClose: resolve });
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const closing = connection.close();
  t.mock.timers.tick(2000);
  await closing;
  assert.equal((await closed).code, 'closed');
  far.destroy();
});

test('a destroyed connection closes with the given reason and drops unsent data', async () => {
  const { connection, peer, closed } = await connected();
  connection.send('PRE_SLEEP');
  connection.destroy(new GearmanError('peer-too-slow', 'm'));
  assert.equal((await closed).code, 'peer-too-slow');
  await assert.rejects(peer.next());
});

test('a destroyed connection passes on no packet, not even from the same chunk', async () => {
  const names: string[] = [];
  const { connection, peer, closed } = await connected({
    onPacket: (packet) => {
      names.push(packet.name);
      connection.destroy(new GearmanError('closed', 'm'));
    },
  });
  peer.sendBytes(Buffer.concat([encodePacket('RES', 'NOOP'), encodePacket('RES', 'NO_JOB')]));
  await closed;
  assert.deepEqual(names, ['NOOP']);
});

test('a connection becomes writable once the peer has read the data', async () => {
  const { connection, peer } = await connected();
  await connection.writable();
  peer.socket.pause();
  connection.send('ECHO_REQ', Buffer.alloc(16 * 1024 * 1024));
  let isWritable = false;
  const writable = connection.writable().then(() => (isWritable = true));
  await new Promise(setImmediate);
  assert.equal(isWritable, false);
  peer.socket.resume();
  await writable;
  assert.equal(connection.pendingBytes, 0);
  await peer.close();
});

test('the wait for a writable connection ends when the connection has closed', async () => {
  const { connection, peer, closed } = await connected();
  peer.socket.pause();
  connection.send('ECHO_REQ', Buffer.alloc(16 * 1024 * 1024));
  const writable = connection.writable();
  connection.destroy(new GearmanError('closed', 'm'));
  await Promise.all([writable, closed]);
  await peer.close();
});

test('a paused connection applies back-pressure to its peer', async () => {
  let bytes = 0;
  const { connection, peer } = await connected({
    onPacket: (packet) => {
      bytes += packet.bytes('data').length;
    },
  });
  connection.pause();
  for (let count = 0; count < 16; count += 1) peer.send('ECHO_RES', Buffer.alloc(1024 * 1024));
  assert.ok(peer.socket.writableLength > 0);
  assert.equal(bytes, 0);
  connection.resume();
  await once(peer.socket, 'drain');
  peer.socket.end();
  await peer.closed;
  assert.equal(bytes, 16 * 1024 * 1024);
});
