import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { withCode } from '../../../../test/fixtures/with-code.ts';
import { BLOCK, DownloadFixture, oddServer, sendRange, sha256 } from './download-fixture.ts';

const CONTENT = randomBytes(5 * BLOCK + 7);
const PACKED = gzipSync(CONTENT, { level: 1 });

type Responder = (request: IncomingMessage, response: ServerResponse, count: number) => void;

/** Sends all bytes in response to a request without a range; otherwise calls `ranged`. */
function wholeOr(ranged: Responder): Responder {
  return (request, response, count) => {
    if (request.headers.range === undefined) response.end(CONTENT);
    else ranged(request, response, count);
  };
}

/** Responds to a request for a range after the first one. */
function afterProbe(ranged: Responder): Responder {
  return wholeOr((request, response, count) => {
    if (count === 1) response.end(sendRange(request, response, CONTENT));
    else ranged(request, response, count);
  });
}

const GZIP = { 'content-encoding': 'gzip' } as const;

/** Sends the head of a response and some bytes, and closes the connection. */
function cutOff(
  response: ServerResponse,
  headers: Readonly<Record<string, string | number>>,
  bytes: Buffer,
): void {
  response.writeHead(200, headers);
  response.write(bytes, () => response.socket?.end());
}

const RESPONDERS: Readonly<Record<string, Responder>> = {
  'sends another ETag with each response': wholeOr((request, response, count) => {
    response.end(sendRange(request, response, CONTENT, { etag: `"${count}"` }));
  }),
  'sends another date with each response': wholeOr((request, response, count) => {
    const modified = new Date(1e12 + count * 1e6).toUTCString();
    response.end(sendRange(request, response, CONTENT, { 'last-modified': modified }));
  }),
  'sends all bytes for If-Range': afterProbe((_, response) => void response.end(CONTENT)),
  'sends another range than was requested': afterProbe((request, response) => {
    request.headers.range = `bytes=0-${CONTENT.length - 1}`;
    response.end(sendRange(request, response, CONTENT));
  }),
  'sends more bytes than the range has': afterProbe((request, response) => {
    response.writeHead(206, {
      etag: '"one"',
      'content-range': `${request.headers.range?.replace('=', ' ')}/${CONTENT.length}`,
    });
    response.end(Buffer.concat([CONTENT, CONTENT]));
  }),
  'responds with 416 to If-Range': afterProbe((_, response) => void response.writeHead(416).end()),
  'responds with 412 to If-Range': afterProbe((_, response) => void response.writeHead(412).end()),
  'responds with 501 to If-Range': afterProbe((_, response) => void response.writeHead(501).end()),
  'responds with 416 to a range': wholeOr((_, response) => void response.writeHead(416).end()),
  'responds with 400 to a range': wholeOr((_, response) => void response.writeHead(400).end()),
  'responds with 403 to a range': wholeOr((_, response) => void response.writeHead(403).end()),
  'responds with 500 to a range': wholeOr((_, response) => void response.writeHead(500).end()),
  'does not send the size of the object': wholeOr((_, response) => {
    response.writeHead(206, { etag: '"one"', 'content-range': 'bytes 0-0/*' }).end(CONTENT.subarray(0, 1));
  }),
  'has a weak ETag': wholeOr((request, response) => {
    response.end(sendRange(request, response, CONTENT, { etag: 'W/"one"' }));
  }),
  'compresses the response although it must not': (_, response) => {
    response.writeHead(200, { 'content-encoding': 'gzip' }).end(PACKED);
  },
  'compresses each range although it must not': (request, response, count) => {
    if (request.headers.range === undefined)
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(PACKED);
    else if (count === 1) response.end(sendRange(request, response, PACKED, { etag: '"one"', ...GZIP }));
    else assert.fail('a range was requested of a file that is compressed for each range');
  },
  'compresses the response and announces the size of the file': (_, response) => {
    cutOff(response, { 'content-encoding': 'gzip', 'content-length': 2 * CONTENT.length }, PACKED);
  },
  'announces more bytes than the file has': (_, response) => {
    cutOff(response, { 'content-length': CONTENT.length + 1 }, CONTENT);
  },
  'announces no length': (_, response) => cutOff(response, { connection: 'close' }, CONTENT),
};

describe('a file with a known sha256 on an unusual server', () => {
  for (const [name, responder] of Object.entries(RESPONDERS)) {
    test(`a file is downloaded at the second attempt from a server that ${name}`, async (t) => {
      const fixture = await DownloadFixture.create(t);
      const server = await oddServer(t, responder);
      const request = { sha256: sha256(CONTENT) };
      const retryPolicy = { attempts: 2, firstDelay: 0.001, maxDelay: 0.001, maxRetryAfter: 0.001 };
      await fixture.download(`${server.url}/image.raw`, request, { retryPolicy });
      assert.ok((await readFile(fixture.destination)).equals(CONTENT));
      const whole = server.asked.filter(({ headers }) => headers.range === undefined);
      assert.ok(whole.length <= 1, `${whole.length} requests for the whole file`);
    });
  }
});

test('a file whose download is cut off is downloaded again', async (t) => {
  for (const encoding of ['identity', 'gzip']) {
    const fixture = await DownloadFixture.create(t);
    const bytes = encoding === 'gzip' ? PACKED : CONTENT;
    const server = await oddServer(t, (_, response, count) => {
      const headers = { 'content-encoding': encoding, 'content-length': bytes.length };
      cutOff(response, headers, count === 1 ? bytes.subarray(0, 2 * BLOCK) : bytes);
    });
    await fixture.download(`${server.url}/image.raw`, { sha256: sha256(CONTENT) });
    assert.ok((await readFile(fixture.destination)).equals(CONTENT));
    assert.equal(server.asked.length, 2);
  }
});

test('a file whose download is always cut off is reported as such', async (t) => {
  const fixture = await DownloadFixture.create(t);
  const server = await oddServer(t, (_, response) => {
    cutOff(response, { 'content-length': CONTENT.length }, CONTENT.subarray(0, BLOCK));
  });
  await assert.rejects(
    fixture.download(`${server.url}/image.raw`, { sha256: sha256(CONTENT) }),
    withCode('download-failed', /image\.raw.*all 3 attempts/),
  );
});

test('a whole file with another sha256 is damaged, and not downloaded again', async (t) => {
  const fixture = await DownloadFixture.create(t);
  const server = await oddServer(t, RESPONDERS['sends another ETag with each response'] as Responder);
  await assert.rejects(
    fixture.download(`${server.url}/image.raw`, { sha256: 'a'.repeat(64) }),
    withCode('artifact-damaged', /its sha256 is/),
  );
  assert.equal(server.asked.filter(({ headers }) => headers.range === undefined).length, 1);
});
