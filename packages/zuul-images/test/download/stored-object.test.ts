import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { describe, test } from 'node:test';
import type { ImageErrorCode } from '@nodepool-builder/image-builder';
import { withCode } from '../../../../test/fixtures/with-code.ts';
import { BLOCK, DownloadFixture, nginxFor, oddServer, sendRange } from './download-fixture.ts';

const LONG_AGO = 'X-Amz-Date=20200101T000000Z&X-Amz-Expires=3600';
const LATER = 'X-Amz-Date=20200101T000000Z&X-Amz-Expires=3600000000';

/** Responses of nginx, with the error for each. */
const RESPONSES: readonly {
  readonly directive: string;
  readonly query?: string;
  readonly code: ImageErrorCode;
  readonly message: RegExp;
}[] = [
  { directive: 'return 404;', code: 'artifact-expired', message: /404; run the job/ },
  { directive: 'return 410;', code: 'artifact-expired', message: /410/ },
  {
    directive: 'return 403;',
    query: LONG_AGO,
    code: 'artifact-expired',
    message: /403.*signed URL has expired/,
  },
  { directive: 'return 403;', query: LATER, code: 'artifact-refused', message: /403.*without a login/ },
  {
    directive: 'return 403 "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>";',
    code: 'artifact-expired',
    message: /403/,
  },
  { directive: 'return 401;', code: 'artifact-refused', message: /401/ },
  { directive: 'return 405;', code: 'artifact-refused', message: /405/ },
  { directive: 'return 503;', code: 'download-failed', message: /503; all 3 attempts in a row/ },
  { directive: 'return 429;', code: 'download-failed', message: /429/ },
  { directive: 'return 444;', code: 'download-failed', message: /hang up/ },
  {
    directive: 'default_type text/html; return 200 "log in";',
    code: 'artifact-refused',
    message: /web page/,
  },
  { directive: 'return 302 ftp://elsewhere/;', code: 'artifact-refused', message: /not http or https/ },
  { directive: 'return 302 /image.raw;', code: 'artifact-refused', message: /more than 5 times/ },
];

describe('responses of a server', () => {
  for (const { directive, query = '', code, message } of RESPONSES) {
    test(`the server response "${directive}" to "${query}" causes the error ${code}`, async (t) => {
      const [nginx, fixture] = await Promise.all([
        nginxFor(t, `location / { ${directive} }`),
        DownloadFixture.create(t),
      ]);
      await assert.rejects(fixture.download(`${nginx.url}/image.raw?${query}`), withCode(code, message));
      const isResumable = code === 'download-failed';
      assert.equal(existsSync(fixture.directory), isResumable);
    });
  }
});

test('an artifact that expires during the download leaves no files', async (t) => {
  const content = randomBytes(40 * BLOCK);
  const fixture = await DownloadFixture.create(t);
  const server = await oddServer(t, (request, response, count) => {
    if (count <= 2) response.end(sendRange(request, response, content));
    else response.writeHead(404).end();
  });
  await assert.rejects(
    fixture.download(`${server.url}/image.raw`, {}, { connections: 1 }),
    withCode('artifact-expired'),
  );
  assert.equal(existsSync(fixture.directory), false);
});

test('a busy server’s Retry-After is obeyed, up to the max delay', async (t) => {
  const fixture = await DownloadFixture.create(t);
  const times: number[] = [];
  const server = await oddServer(t, (request, response, count) => {
    times.push(performance.now());
    const after = ['1', new Date(Date.now() + 3_600_000).toUTCString()][count - 1];
    if (after !== undefined) response.writeHead(429, { 'retry-after': after }).end();
    else response.end(sendRange(request, response, randomBytes(1)));
  });
  const retryPolicy = { attempts: 3, firstDelay: 0.001, maxDelay: 1.2, maxRetryAfter: 1.2 };
  await fixture.download(`${server.url}/image.raw`, {}, { retryPolicy });
  const [first = 0, second = 0, third = 0] = times;
  assert.ok(second - first >= 999, `it waited ${second - first} ms`);
  assert.ok(third - second >= 1199 && third - second < 60_000, `it waited ${third - second} ms`);
});

test('a silent connection to a server counts as lost', async (t) => {
  const content = randomBytes(2 * BLOCK);
  const fixture = await DownloadFixture.create(t);
  const server = await oddServer(t, (request, response, count) => {
    if (count === 1) return; // no response at all
    const part = sendRange(request, response, content);
    if (count === 3) response.write(part.subarray(0, 1000));
    else response.end(part);
  });
  await fixture.download(`${server.url}/image.raw`, {}, { connections: 1, stall: 500 });
  assert.ok(server.asked.length >= 4);
  const lost = /(only \d+ bytes arrived in|no response arrived within) 0\.5 s/;
  assert.ok(fixture.logger.lines.filter((line) => lost.test(line)).length >= 2);
});

test('an error response whose body never ends still throws its error', { timeout: 30_000 }, async (t) => {
  const fixture = await DownloadFixture.create(t);
  const server = await oddServer(t, (_, response) => void response.writeHead(403).write('denied'));
  await assert.rejects(
    fixture.download(`${server.url}/image.raw`, {}, { stall: 200 }),
    withCode('artifact-refused', /403/),
  );
});
