import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { AzureSession } from '../src/azure-session.ts';

const SIGNAL = new AbortController().signal;

/** Starts a Resource Manager whose links name another host, and opens a session with it. */
async function openSession(t: TestContext): Promise<{ session: AzureSession; requests: string[] }> {
  const requests: string[] = [];
  const server = createServer(({ method, url = '', headers }, response) => {
    requests.push(`${method} ${url} ${headers.authorization}`);
    const isSecond = url.includes('skiptoken');
    const inside = 'https://inside.invalid:8443';
    if (method === 'DELETE') {
      response.writeHead(202, { location: `${inside}/operations/1?api-version=1`, 'retry-after': '0' }).end();
    } else if (url.startsWith('/operations')) {
      response.writeHead(204).end();
    } else {
      const value = [{ id: isSecond ? 'b' : 'a', name: isSecond ? 'b' : 'a', location: 'westeurope' }];
      const nextLink = isSecond ? undefined : `${inside}${url}&%24skiptoken=1`;
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ value, nextLink }));
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const credential = {
    getToken: () => Promise.resolve({ token: 'secret', expiresOnTimestamp: Date.now() + 3_600_000 }),
  };
  const session = await AzureSession.open(
    {
      subscription: '00000000-0000-0000-0000-000000000000',
      resourceGroup: 'images',
      endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      credential: () => Promise.resolve(credential),
    },
    { name: 'azure', pollInterval: 0.01, retries: 0 },
  );
  return { session, requests };
}

test('the next page of an Azure list is requested at the endpoint, whatever host its link names', async (t) => {
  const { session, requests } = await openSession(t);
  const images = await session.list('list of images', SIGNAL, ({ images: client }, { abortSignal }) =>
    client.listByResourceGroup('images', { abortSignal }),
  );
  assert.deepEqual(
    images.map(({ name }) => name),
    ['a', 'b'],
  );
  assert.equal(requests.length, 2);
  for (const request of requests) assert.match(request, /^GET \/subscriptions\/.* Bearer secret$/);
});

test('an Azure operation is polled at the endpoint, whatever host its link names', async (t) => {
  const { session, requests } = await openSession(t);
  await session.call('deletion of image a', SIGNAL, async ({ images }, options) => {
    await images.delete('images', 'a', options);
  });
  assert.equal(requests.at(-1), 'GET /operations/1?api-version=1 Bearer secret');
});
