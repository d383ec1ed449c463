// Not a unit test: it starts a server.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { CloudError } from '@nodepool-builder/image-builder/module-kit';
import { DiskPages } from '../src/disk-pages.ts';
import { vhdFooter } from '../src/fixed-vhd.ts';
import { BLOCK, diskRequest } from './disk.ts';

const SIZE = 10 * BLOCK;

/** Sends a disk with one block to a server that does not answer its first requests. */
async function sendPages(t: TestContext, silent: number, signal: AbortSignal): Promise<number> {
  let seen = 0;
  const server = createServer((request, response) => {
    request.resume();
    request.once('end', () => {
      if (++seen > silent) response.writeHead(201).end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  const pages = new DiskPages({
    subject: 'provider azure: upload of image debian-1',
    grant: () => Promise.resolve(`http://127.0.0.1:${port}/container/disk?sig=secret`),
    limit: undefined,
    signal,
    answerTimeout: 0.3,
    onProgress: () => {},
  });
  const { file } = await diskRequest(t, [0], SIZE);
  await pages.send(file.path, SIZE, SIZE, vhdFooter(SIZE, 'seed', new Date()), false);
  return seen;
}

test('a request without an answer is repeated', async (t) => {
  // Two pages and the repeated request; on a busy host, an answer may come too late once more.
  assert.ok((await sendPages(t, 1, t.signal)) >= 3);
});

test('an abort ends a request without an answer', async (t) => {
  const signal = AbortSignal.timeout(100);
  await assert.rejects(sendPages(t, 99, signal), (error) => !(error instanceof CloudError));
  assert.ok(signal.aborted);
});
