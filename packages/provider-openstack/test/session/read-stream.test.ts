import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { readStream } from '../../src/session/read-stream.ts';
import { failsWith } from '../fixtures/fails-with.ts';

/** What the server does after the first piece. */
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
  readonly stallTimeout?: number;
  readonly signal?: AbortSignal;
}

async function read({ stallTimeout = 60, signal }: ReadLimits = {}): Promise<string> {
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const request = { name: 'GET it', url, headers: {}, stallTimeout, agent: undefined, signal };
  const { answer, body } = await readStream(request);
  if (answer.status !== 200) return `${answer.status}: ${answer.body}`;
  let text = '';
  for await (const piece of body) text += String(piece);
  return text;
}

describe('a GET of a stream', () => {
  test('gives all pieces', async () => {
    goOn = (response) => response.end('-last');
    assert.equal(await read(), 'first-last');
  });

  test('that breaks off fails', async () => {
    goOn = (response) => response.destroy();
    await assert.rejects(read(), failsWith('connection-failed', 'GET it'));
  });

  test('that is refused is not less so if the refusal breaks off', async (t) => {
    status = 403;
    t.after(() => (status = 200));
    goOn = (response) => response.destroy();
    assert.equal(await read(), '403: first');
  });

  test('that stands still fails', async () => {
    goOn = () => {};
    await assert.rejects(
      read({ stallTimeout: 0.05 }),
      failsWith('connection-failed', 'nothing came for 0.05 s'),
    );
  });

  test('is aborted by its signal', async () => {
    const abort = new AbortController();
    goOn = () => abort.abort();
    await assert.rejects(read({ signal: abort.signal }), failsWith('connection-failed', 'aborted'));
  });
});
