// Not a unit test: it starts a server.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { CloudError } from '@nodepool-builder/image-builder/plugin';
import { DiskPages, type PagesOptions } from '../src/disk-pages.ts';
import { vhdFooter } from '../src/fixed-vhd.ts';
import { BLOCK, diskRequest } from './disk.ts';

const SIZE = 10 * BLOCK;

/** Starts a server that reads each request before it responds. @returns the URL of a disk */
async function startServer(
  t: TestContext,
  respond: (request: IncomingMessage, response: ServerResponse) => unknown,
): Promise<string> {
  const server = createServer((request, response) => {
    request.resume();
    request.once('end', () => respond(request, response));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/container/disk`;
}

async function send(
  t: TestContext,
  blocks: readonly number[],
  options: Partial<PagesOptions>,
): Promise<void> {
  const pages = new DiskPages({
    subject: 'provider azure: upload of image debian-1',
    grant: () => Promise.reject(new Error('no access')),
    limit: undefined,
    signal: t.signal,
    onProgress: () => {},
    ...options,
  });
  const { file } = await diskRequest(t, blocks, SIZE);
  await pages.send(file.path, SIZE, SIZE, vhdFooter(SIZE, 'seed', new Date()), false);
}

test('a page request to Azure without a response is repeated', async (t) => {
  let seen = 0;
  const url = await startServer(t, (_, response) => {
    if (++seen > 1) response.writeHead(201).end();
  });
  await send(t, [0], { grant: () => Promise.resolve(`${url}?sig=secret`), responseTimeout: 2 });
  // Two pages and the repeated request. On a busy host, another response may arrive too late.
  assert.ok(seen >= 3);
});

test('an abort ends a page request to Azure without a response', async (t) => {
  const abort = new AbortController();
  const url = await startServer(t, () => abort.abort());
  const sending = send(t, [0], { grant: () => Promise.resolve(`${url}?sig=secret`), signal: abort.signal });
  await assert.rejects(sending, (error) => !(error instanceof CloudError));
  assert.ok(abort.signal.aborted);
});

test('access to an Azure disk that another request replaced again causes no error', async (t) => {
  // One block is denied with the first access, and again with the second one, which the other block had replaced.
  const granted = [1, 2, 3].map(() => Promise.withResolvers<void>());
  let grants = 0;
  let slow: unknown;
  const url = await startServer(t, async ({ url: target, headers }, response) => {
    const range = headers['x-ms-range'];
    slow ??= range;
    const access = Number(new URL(target ?? '', url).searchParams.get('sig'));
    if (range === slow && access === 2) await granted[2]?.promise;
    response.writeHead(access === 3 ? 201 : 403).end();
  });
  let blocks = 0;
  await send(t, [0, 1], {
    grant: async () => {
      granted[grants++]?.resolve();
      return await Promise.resolve(`${url}?sig=${grants}`);
    },
    // The other block starts with the second access.
    limit: { take: async () => await (blocks++ === 0 ? undefined : granted[1]?.promise) },
  });
  assert.equal(grants, 3);
});

test('access to an Azure disk that is denied for good causes an error', async (t) => {
  const url = await startServer(t, (_, response) => response.writeHead(403).end());
  let grants = 0;
  const grant = () => Promise.resolve(`${url}?sig=${++grants}`);
  await assert.rejects(send(t, [0, 1, 2], { grant }), CloudError);
  assert.ok(grants <= 4, `${grants} grants`);
});
