import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { withListBounds } from '../http/list-pages.ts';
import type { ImageProvider } from '../types.ts';

/** A response with status 200. */
export interface ListResponse {
  readonly type: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A provider whose requests go to the server of {@link imageListContract}. */
export interface ListSite {
  readonly provider: ImageProvider;
  /**
   * Returns a page without images, as the service sends it.
   *
   * @param marker marker of the next page; undefined for the last page
   */
  page(marker: string | undefined): ListResponse;
}

/** Responses that no service sends for a list. */
const WRONG: Readonly<Record<string, ListResponse>> = {
  'the HTML page of a proxy': { type: 'text/html', body: '<html><body>Please sign in.</body></html>' },
  'an empty body': { type: 'application/octet-stream', body: '' },
  'an empty JSON object': { type: 'application/json', body: '{}' },
  'a JSON list': { type: 'application/json', body: '[]' },
  'XML with another root': { type: 'application/xml', body: '<Other><Items/></Other>' },
};

/** Limits that a test reaches at once. */
const BOUNDS = { pages: 20, responseBytes: 2 ** 20 };

/** Returns the marker of a page. Each request gets another one, so that none repeats. */
const INVENTED = (request: number): string => `marker-${request}`;

/**
 * Registers the tests that every {@link ImageProvider} passes whose list comes from a server. A response that is not a
 * list is an error, never an empty list, and every list ends.
 *
 * @param name name of the test suite
 * @param open opens a provider that sends its requests to `endpoint`, with its cleanup in `t.after`
 */
export function imageListContract(
  name: string,
  open: (t: TestContext, endpoint: string) => Promise<ListSite>,
): void {
  describe(`${name} as a list of images`, () => {
    test('an image list may end with an empty page', async (t) => {
      const { site } = await start(t, open, (response, page) => send(response, page(undefined)));
      assert.deepEqual(await site.provider.list(), []);
    });

    for (const [title, wrong] of Object.entries(WRONG)) {
      test(`${title} in place of an image list causes an error that names the provider`, async (t) => {
        const { site } = await start(t, open, (response) => send(response, wrong));
        const error = await failure(site.provider);
        assert.equal(error.code, 'invalid-response', error.message);
        assert.match(error.message, /^(?:provider|cloud) \S+: /);
      });
    }

    test('an image list whose pages repeat ends with an error', async (t) => {
      const { site, requests } = await start(t, open, (response, page) => send(response, page('same')));
      const error = await failure(site.provider);
      assert.equal(error.code, 'endless-list', error.message);
      assert.ok(requests() <= 3, `${requests()} requests`);
    });

    test('an image list whose pages never end ends with an error that names the bound', async (t) => {
      const { site, requests } = await start(t, open, (response, page) =>
        send(response, page(INVENTED(requests()))),
      );
      const error = await withListBounds(BOUNDS, () => failure(site.provider));
      assert.equal(error.code, 'endless-list', error.message);
      assert.match(error.message, /more than 20 pages/);
      assert.equal(requests(), 20);
    });

    test('an image list whose response never ends is not read to the end', async (t) => {
      let sent = 0;
      const { site } = await start(t, open, (response, page) => {
        const { type, headers } = page(undefined);
        response.writeHead(200, { 'content-type': type, ...headers });
        const space = Buffer.alloc(2 ** 16, ' ');
        const more = (): void => {
          if (response.destroyed) return;
          sent += space.length;
          if (response.write(space)) setImmediate(more);
          else response.once('drain', more);
        };
        more();
      });
      const error = await withListBounds(BOUNDS, () => failure(site.provider));
      assert.match(error.message, /the response is longer than 1048576 bytes/);
      assert.ok(sent < 64 * 2 ** 20, `${sent} bytes`);
    });
  });
}

/** Starts a server on loopback, and opens a provider with it. */
async function start(
  t: TestContext,
  open: (t: TestContext, endpoint: string) => Promise<ListSite>,
  respond: (response: ServerResponse, page: ListSite['page']) => void,
): Promise<{ readonly site: ListSite; readonly requests: () => number }> {
  let requests = 0;
  const server = createServer((request, response) => {
    requests += 1;
    response.on('error', () => undefined);
    request.resume().on('end', () => respond(response, (marker) => site.page(marker)));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(async () => {
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  });
  const site = await open(t, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  return { site, requests: () => requests };
}

function send(response: ServerResponse, { type, body, headers }: ListResponse): void {
  response.writeHead(200, { 'content-type': type, ...headers }).end(body);
}

/** Returns the error of a list. */
async function failure(provider: ImageProvider): Promise<Error & { readonly code?: string }> {
  return await provider.list().then(
    (images) => assert.fail(`it lists ${images.length} images`),
    (error: Error) => error,
  );
}
