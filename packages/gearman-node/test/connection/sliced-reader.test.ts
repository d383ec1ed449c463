import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { FlushGroup } from '../../src/connection/flush-group.ts';
import { SlicedReader } from '../../src/connection/sliced-reader.ts';
import { randomBytes } from '../fixtures/random-bytes.ts';
import { socketPair } from '../fixtures/socket-pair.ts';

const PIECE = 4096;

/** A socket into which a test pushes chunks. */
function fakeSocket(): Socket {
  return new Duplex({ read: () => {}, write: (_chunk, _encoding, done) => done() }) as Socket;
}

function read(socket: Socket, onBytes: (bytes: Buffer) => void): SlicedReader {
  return new SlicedReader(socket, new FlushGroup(), onBytes);
}

function spend(milliseconds: number): void {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}

test('a small chunk from a socket is processed at once', async () => {
  const socket = fakeSocket();
  const texts: string[] = [];
  read(socket, (bytes) => texts.push(bytes.toString()));
  await turn();
  socket.push(Buffer.from('abc'));
  assert.deepEqual(texts, ['abc']);
});

test('the event loop turns between two slices of a large chunk', async () => {
  const socket = fakeSocket();
  const log: string[] = [];
  read(socket, (bytes) => {
    log.push(String(bytes[0]));
    spend(1);
  });
  await turn();
  socket.push(Buffer.concat([Buffer.alloc(PIECE, 1), Buffer.alloc(PIECE, 2)]));
  socket.push(Buffer.alloc(1, 3));
  socket.push(null);
  const ended = once(socket, 'end');
  while (!socket.readableEnded) {
    log.push('turn');
    await turn();
  }
  await ended;
  assert.match(log.join(' '), /^turn (?:turn )?1 turn (?:turn )?2 (?:turn )*3/);
});

test('one turn of the event loop reads large chunks of a few sockets, whatever their number', async () => {
  const group = new FlushGroup();
  const sockets = Array.from({ length: 20 }, fakeSocket);
  let served = 0;
  const slice = (): void => {
    served += 1;
    spend(1);
  };
  for (const socket of sockets) void new SlicedReader(socket, group, slice);
  await turn();
  for (const socket of sockets) socket.push(Buffer.alloc(PIECE + 1));
  for (let before = 0; served < sockets.length; before = served) {
    await turn();
    assert.ok(served - before <= 2, `${served - before} in one turn`);
  }
  for (const socket of sockets) socket.destroy();
});

test('a paused reader holds back the rest of its chunk', async () => {
  const socket = fakeSocket();
  const sizes: number[] = [];
  const reader = read(socket, (bytes) => {
    sizes.push(bytes.length);
    if (sizes.length === 1) reader.pause();
  });
  await turn();
  socket.push(Buffer.alloc(PIECE + 1));
  for (let turns = 0; turns < 5; turns += 1) await turn();
  assert.deepEqual(sizes, [PIECE]);
  reader.resume();
  await turn();
  assert.deepEqual(sizes, [PIECE, 1]);
});

test('a chunk that waited in a paused stream is processed before the stream’s end', async () => {
  const socket = fakeSocket();
  const log: string[] = [];
  const reader = read(socket, (bytes) => {
    log.push(String(bytes[0]));
    spend(1);
  });
  socket.once('end', () => log.push('end'));
  reader.pause();
  socket.push(Buffer.concat([Buffer.alloc(PIECE, 1), Buffer.alloc(PIECE, 2)]));
  socket.push(null);
  reader.resume();
  await once(socket, 'end');
  assert.deepEqual(log, ['1', '2', 'end']);
});

test('a fast peer’s bytes all arrive in order, and the end after them', async () => {
  const [near, far] = await socketPair();
  const sent = randomBytes(1_000_001, 1);
  const pieces: Buffer[] = [];
  read(far, (bytes) => pieces.push(Buffer.from(bytes)));
  near.end(sent);
  await once(far, 'end');
  assert.ok(Buffer.concat(pieces).equals(sent));
  near.destroy();
});
