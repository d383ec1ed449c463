import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { inspect } from 'node:util';
import { selfSigned } from '../../../../test/fixtures/self-signed.ts';
import { startZuul } from '../../../../test/fixtures/zuul/start-zuul.ts';
import { ZuulHttp } from '../../src/api/zuul-http.ts';
import { ApiFixture, ON } from './api-fixture.ts';
import { zuulFailure } from './zuul-failure.ts';

async function listen(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe('a certificate', () => {
  test('a Zuul server’s certificate is trusted with ca-file', async (t) => {
    const tls = await selfSigned();
    const zuul = await startZuul(t, { tls });
    const { uuid } = zuul.table().add();
    const fixture = new ApiFixture(zuul, { http: new ZuulHttp({ furtherCa: tls.cert }) });
    assert.deepEqual(await fixture.uuids(), [uuid]);
  });

  test('a certificate by an unknown authority causes an error that is not retried', async (t) => {
    const zuul = await startZuul(t, { tls: await selfSigned() });
    const fixture = new ApiFixture(zuul);
    await assert.rejects(fixture.builds(), zuulFailure('certificate-untrusted', 'self-signed certificate'));
    assert.deepEqual(fixture.clock.sleeps, []);
  });
});

describe('a token', () => {
  const headers = { authorization: 'Bearer secret' };

  test('a token is sent to another path on the host, and never to another host', async (t) => {
    const reached: IncomingMessage[] = [];
    const elsewhere = await listen(t, (request, response) => {
      reached.push(request);
      response.end('[]');
    });
    const seen: IncomingMessage[] = [];
    const origin = await listen(t, (request, response) => {
      seen.push(request);
      const location = request.url === '/one' ? '/two' : `${elsewhere}/login`;
      response.writeHead(302, { location }).end();
    });
    const sent = new ZuulHttp().json(
      'a request',
      { url: new URL(`${origin}/one`), headers, signal: ON },
      String,
    );
    await assert.rejects(sent, zuulFailure('redirected', '302 Found'));
    assert.deepEqual(
      seen.map(({ url, headers: { authorization } }) => [url, authorization]),
      [
        ['/one', 'Bearer secret'],
        ['/two', 'Bearer secret'],
      ],
    );
    assert.deepEqual(reached, []);
  });

  test('a token is not in any part of an error', async (t) => {
    const origin = await listen(t, (request) => request.socket.destroy());
    const request = { url: new URL(`${origin}/?sig=secret`), headers, signal: ON };
    const sent = new ZuulHttp().json('a request', request, String);
    await assert.rejects(sent, (error) => {
      // the stack quotes the sources
      const { stack: _, ...parts } = Object.getOwnPropertyDescriptors(error);
      assert.doesNotMatch(inspect(parts, { depth: 20, showHidden: true }), /Bearer secret|sig=secret/);
      return zuulFailure('connection-failed')(error);
    });
  });
});

test('an endless response is aborted', { timeout: 60_000 }, async (t) => {
  const piece = Buffer.alloc(1024 * 1024, ' ');
  const origin = await listen(t, (_, response) => {
    const more = (): void => {
      while (response.writable && response.write(piece));
      if (response.writable) response.once('drain', more);
    };
    more();
  });
  const sent = new ZuulHttp().json('a request', { url: new URL(origin), signal: ON }, String);
  await assert.rejects(sent, zuulFailure('invalid-response', 'longer than'));
});

test('a form is not sent to the target of a redirect', async (t) => {
  const seen: (string | undefined)[] = [];
  const origin = await listen(t, (request, response) => {
    seen.push(request.url);
    response.writeHead(307, { location: '/two' }).end();
  });
  const url = new URL(`${origin}/one`);
  const sent = new ZuulHttp().json('a request', { url, form: { a: 'b' }, signal: ON }, String);
  await assert.rejects(sent, zuulFailure('redirected', '307'));
  assert.deepEqual(seen, ['/one']);
});
