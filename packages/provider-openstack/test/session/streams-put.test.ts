// Not a unit test: it takes seconds.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { putStream, type StreamPut } from '../../src/session/streams.ts';
import { failsWith } from '../fixtures/fails-with.ts';

const CHUNK = Buffer.alloc(65_536, 'x');

/** Handles a connection to the server. */
let serve: (socket: Socket) => void;
let sockets: Socket[];
let server: ReturnType<typeof createServer>;

beforeEach(async () => {
  sockets = [];
  server = createServer((socket) => {
    sockets.push(socket.on('error', () => undefined));
    serve(socket);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await once(server.close(), 'close');
});

/** Creates a body of this size; `pulled` returns the number of requested bytes. */
function bodyOf(size: number): { body: Readable; pulled: () => number } {
  let pulled = 0;
  const read = function (this: Readable): void {
    if (pulled >= size) {
      this.push(null);
      return;
    }
    const chunk = CHUNK.subarray(0, Math.min(CHUNK.length, size - pulled));
    pulled += chunk.length;
    this.push(chunk);
  };
  return { body: new Readable({ read }), pulled: () => pulled };
}

function put(
  body: AsyncIterable<Buffer>,
  size: number,
  more: Partial<StreamPut> = {},
): ReturnType<typeof putStream> {
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v2/images/1/file`);
  const headers = { 'x-auth-token': 't' };
  return putStream({
    name: 'cloud test: PUT /x',
    url,
    headers,
    body,
    size,
    stallTimeout: 60,
    ...more,
  });
}

/** Reads a request with this number of body bytes. */
function readBody(size: number, whole: (socket: Socket) => void): (socket: Socket) => void {
  return (socket) => {
    let head = '';
    let missing: number | undefined;
    socket.on('data', (data) => {
      if (missing === undefined) {
        head += data.toString('latin1');
        const end = head.indexOf('\r\n\r\n');
        if (end >= 0) missing = size - (head.length - end - 4);
      } else {
        missing -= data.length;
      }
      if (missing === 0) whole(socket);
    });
  };
}

function respondAfter(size: number, response: string): (socket: Socket) => void {
  return readBody(size, (socket) => socket.write(response));
}

const NO_CONTENT = 'HTTP/1.1 204 No Content\r\nX-Thing: 1\r\n\r\n';
const ENDLESS = 1e12;

describe('a PUT of a stream', () => {
  it('a PUT of a stream sends the whole body with its length and returns the response', async () => {
    let head = '';
    serve = (socket) => {
      socket.once('data', (data) => (head = data.toString('latin1').split('\r\n\r\n')[0] ?? ''));
      respondAfter(1_000_000, NO_CONTENT)(socket);
    };
    const { body } = bodyOf(1_000_000);
    const response = await put(body, 1_000_000);
    assert.deepEqual([response.status, response.headers['x-thing'], response.body], [204, '1', '']);
    assert.match(head, /^PUT \/v2\/images\/1\/file HTTP\/1\.1\r\n/);
    assert.match(head, /\r\ncontent-length: 1000000\b/i);
    assert.match(head, /\r\nx-auth-token: t\b/i);
    assert.doesNotMatch(head, /transfer-encoding/i);
  });

  it('a PUT of a stream may be empty', async () => {
    serve = respondAfter(0, NO_CONTENT);
    assert.equal((await put(bodyOf(0).body, 0)).status, 204);
  });

  it('a PUT of a stream reads the body to its end, where the source computes its digests', async () => {
    serve = respondAfter(CHUNK.length, NO_CONTENT);
    const { body } = bodyOf(CHUNK.length);
    await put(body, CHUNK.length);
    assert.ok(body.readableEnded);
  });

  it('a PUT of a stream reads only as much of the source as the server accepts', async () => {
    serve = (socket) => void socket.pause();
    const { body, pulled } = bodyOf(ENDLESS);
    await assert.rejects(put(body, ENDLESS, { stallTimeout: 0.2 }), failsWith('connection-failed', '0.2 s'));
    // the kernel's buffer for a loopback connection
    assert.ok(pulled() < 32 * 1024 * 1024, `${pulled()} bytes`);
    assert.ok(body.destroyed);
  });

  it('a PUT of a stream requests a piece after the previous one was written', async () => {
    let received = '';
    const pieces = ['a', 'b', 'c'].map((letter) => letter.repeat(CHUNK.length));
    serve = (socket) => {
      socket.on('data', (data: Buffer) => {
        received += data.toString();
        if (received.endsWith(pieces.join(''))) socket.end(NO_CONTENT);
      });
    };
    const memory = Buffer.alloc(CHUNK.length);
    async function* lent(): AsyncGenerator<Buffer> {
      for (const piece of pieces) {
        memory.write(piece);
        yield memory;
      }
    }
    assert.equal((await put(lent(), 3 * CHUNK.length)).status, 204);
  });

  it('a PUT of a stream does not time out while the source pauses', async (t) => {
    serve = respondAfter(2, NO_CONTENT);
    t.mock.timers.enable({ apis: ['setTimeout'] });
    async function* slowly(): AsyncGenerator<Buffer> {
      yield Buffer.from('a');
      // longer than the time limit on the server
      t.mock.timers.tick(120_000);
      yield Buffer.from('b');
    }
    assert.equal((await put(slowly(), 2, { stallTimeout: 60 })).status, 204);
  });

  it('a PUT of a stream times out without a response after the last byte', async () => {
    serve = (socket) => void socket.resume();
    await assert.rejects(put(bodyOf(10).body, 10, { stallTimeout: 0.05 }), failsWith('connection-failed'));
  });

  it('a PUT of a stream returns an early rejection, stops reading, and closes the connection', async () => {
    serve = (socket) => {
      socket.once('data', () => {
        socket.pause();
        socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 5\r\n\r\nquota');
      });
    };
    const { body } = bodyOf(ENDLESS);
    const response = await put(body, ENDLESS);
    assert.deepEqual([response.status, response.body], [413, 'quota']);
    assert.ok(body.destroyed);
    const [socket] = sockets;
    await once((socket as Socket).resume(), 'close');
  });

  it('a PUT of a stream returns a rejection during the last piece, even if the server does not read the rest', async () => {
    serve = (socket) => {
      socket.once('data', () => socket.pause().end('HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n'));
    };
    // more than the kernel's buffer for a loopback connection
    const body = Readable.from([Buffer.alloc(2 ** 25)]);
    assert.equal((await put(body, 2 ** 25)).status, 401);
    assert.ok(body.destroyed);
  });

  it('a PUT of a stream fails after a success response before the end of the body', async () => {
    serve = (socket) => socket.once('data', () => socket.pause().write(NO_CONTENT));
    await assert.rejects(
      put(bodyOf(ENDLESS).body, ENDLESS),
      failsWith('invalid-response', `of ${ENDLESS} bytes`),
    );
  });

  it('a PUT of a stream fails and releases the body after a lost connection', async () => {
    serve = (socket) => socket.once('data', () => socket.resetAndDestroy());
    const { body } = bodyOf(ENDLESS);
    await assert.rejects(put(body, ENDLESS), failsWith('connection-failed', 'cloud test: PUT /x'));
    assert.ok(body.destroyed);
  });

  it('a PUT of a stream fails with the source’s error', async () => {
    const began = Promise.withResolvers<void>();
    serve = (socket) => socket.on('data', () => began.resolve());
    const broken = new Error('read error on sdb');
    async function* half(): AsyncGenerator<Buffer> {
      yield CHUNK;
      await began.promise;
      throw broken;
    }
    await assert.rejects(put(Readable.from(half()), ENDLESS), broken);
    await once(sockets[0] as Socket, 'close');
  });

  for (const size of [CHUNK.length - 1, CHUNK.length + 1]) {
    it(`a PUT of a stream of ${CHUNK.length} bytes instead of ${size} is not completed`, async () => {
      let whole = false;
      const connection = Promise.withResolvers<Socket>();
      serve = (socket) => {
        readBody(size, () => (whole = true))(socket);
        connection.resolve(socket);
      };
      const { body } = bodyOf(CHUNK.length);
      await assert.rejects(put(body, size), failsWith('image-missing-on-disk', `${size} bytes`));
      const socket = await connection.promise;
      if (!socket.closed) await once(socket, 'close');
      assert.equal(whole, false);
    });
  }

  it('a PUT of a stream is aborted by its signal', async () => {
    const controller = new AbortController();
    serve = (socket) => socket.once('data', () => controller.abort());
    const { body } = bodyOf(ENDLESS);
    await assert.rejects(
      put(body, ENDLESS, { signal: controller.signal }),
      failsWith('connection-failed', 'aborted'),
    );
    assert.ok(body.destroyed);
  });
});
