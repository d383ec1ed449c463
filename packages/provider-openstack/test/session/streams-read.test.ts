import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { readStream } from '../../src/session/streams.ts';
import { failsWith } from '../fixtures/fails-with.ts';

/** Action of the server after the first chunk. */
let goOn: (response: ServerResponse) => void;
let status = 200;
let server: Server;

before(async () => {
  server = createServer((_, response) => {
    response.writeHead(status, { 'content-length': '10' });
    response.write('first', () => goOn(response));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
});

after(() => {
  server.close();
  server.closeAllConnections();
});

interface ReadLimits {
  /** Awaited between the headers and the first chunk. */
  readonly pause?: Promise<unknown>;
  readonly stallTimeout?: number;
  readonly signal?: AbortSignal;
}

async function read({ pause, stallTimeout = 60, signal }: ReadLimits = {}): Promise<string> {
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const request = { name: 'GET it', url, headers: {}, stallTimeout, ...(signal && { signal }) };
  const { response, body } = await readStream(request);
  if (response.status !== 200) return `${response.status}: ${response.body}`;
  await pause;
  let text = '';
  for await (const piece of body) text += String(piece);
  return text;
}

describe('a GET of a stream', () => {
  test('a GET of a stream yields all pieces', async () => {
    goOn = (response) => response.end('-last');
    assert.equal(await read(), 'first-last');
  });

  test('a GET of a stream that is interrupted fails', async () => {
    goOn = (response) => response.destroy();
    await assert.rejects(read(), failsWith('connection-failed', 'GET it'));
  });

  test('a GET of a stream that is interrupted before its body is read fails there, and not in the process', async () => {
    const closed = Promise.withResolvers<void>();
    goOn = (response) => response.socket?.on('close', () => setImmediate(closed.resolve)).destroy();
    await assert.rejects(read({ pause: closed.promise }), failsWith('connection-failed', 'GET it'));
  });

  test('a GET of a stream ends an error response that never ends', async (t) => {
    status = 500;
    t.after(() => (status = 200));
    goOn = () => {};
    assert.equal(await read({ stallTimeout: 1 }), '500: first');
  });

  test('a GET of a stream has the status of an error response that is interrupted', async (t) => {
    status = 403;
    t.after(() => (status = 200));
    goOn = (response) => response.destroy();
    assert.equal(await read(), '403: first');
  });

  test('a GET of a stream that stalls fails', async () => {
    goOn = () => {};
    await assert.rejects(
      read({ stallTimeout: 0.05 }),
      failsWith('connection-failed', 'sent no byte for 0.05 s'),
    );
  });

  test('a GET of a stream is aborted by its signal', async () => {
    const abort = new AbortController();
    goOn = () => abort.abort();
    await assert.rejects(read({ signal: abort.signal }), failsWith('connection-failed', 'aborted'));
  });
});
