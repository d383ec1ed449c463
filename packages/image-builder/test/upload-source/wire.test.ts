import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { openUploadSource } from '../../src/index.ts';
import { coreutilsDigest, LARGE, randomFile } from './image-file.ts';

/** A server that answers with the sha512 of what it was sent, and takes its time to read it. */
async function slowServer(t: TestContext): Promise<Server> {
  const server = createServer((incoming, answer) => {
    void (async () => {
      const hash = createHash('sha512');
      for await (const chunk of incoming as AsyncIterable<Buffer>) {
        hash.update(chunk);
        for (let turn = 0; turn < 20; turn += 1) await setImmediate();
      }
      answer.end(hash.digest('hex'));
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return server;
}

function put(server: Server, size: number) {
  const { port } = server.address() as AddressInfo;
  const outgoing = request({ host: '127.0.0.1', port, method: 'PUT', headers: { 'content-length': size } });
  const answered = once(outgoing, 'response').then(async ([response]) => {
    const chunks = await (response as IncomingMessage).toArray();
    return Buffer.concat(chunks).toString();
  });
  return { outgoing, answered };
}

test('lent pieces reach a slow server whole when each waits until the socket took it', async (t) => {
  const { path } = await randomFile(t, LARGE + 5);
  const source = await openUploadSource(path, { digests: ['md5', 'sha256'] });
  t.after(() => source.close());
  const { outgoing, answered } = put(await slowServer(t), source.size);
  for await (const piece of source.pieces()) {
    await new Promise((resolve) => void outgoing.write(piece, resolve));
  }
  outgoing.end();
  assert.equal(await answered, coreutilsDigest('sha512', path));
});

test('the stream reaches a slow server whole', async (t) => {
  const { path } = await randomFile(t, LARGE + 5);
  const source = await openUploadSource(path, { digests: ['md5', 'sha256'] });
  t.after(() => source.close());
  const { outgoing, answered } = put(await slowServer(t), source.size);
  await pipeline(source.stream(), outgoing);
  assert.equal(await answered, coreutilsDigest('sha512', path));
});
