import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { BLOCK, DownloadFixture, nginxFor, oddServer, sendRange } from './download-fixture.ts';

describe('an object on nginx', () => {
  test('an object on nginx is fetched in ranges, each byte once', async (t) => {
    const [nginx, fixture] = await Promise.all([nginxFor(t), DownloadFixture.create(t)]);
    const content = randomBytes(9 * BLOCK + 1000);
    await writeFile(join(nginx.directory, 'image.raw'), content);
    await fixture.download(`${nginx.url}/image.raw`);
    assert.ok((await readFile(fixture.destination)).equals(content));
    const [probe, ...requests] = await nginx.finish();
    assert.deepEqual([probe?.range, probe?.status], ['bytes=0-0', 206]);
    assert.deepEqual([requests.length, requests.every(({ status }) => status === 206)], [5, true]);
    assert.equal(
      requests.reduce((sum, { bytes }) => sum + bytes, 0),
      content.length,
    );
  });

  for (const [what, directives, requests] of [
    ['supports no ranges', 'max_ranges 0;', 1],
    ['sends no validator', 'etag off; add_header Last-Modified "";', 2],
  ] as const) {
    test(`an object is fetched as a whole if nginx ${what}`, async (t) => {
      const [nginx, fixture] = await Promise.all([nginxFor(t, directives), DownloadFixture.create(t)]);
      const content = randomBytes(3 * BLOCK + 1);
      await writeFile(join(nginx.directory, 'image.raw'), content);
      await fixture.download(`${nginx.url}/image.raw`);
      assert.ok((await readFile(fixture.destination)).equals(content));
      assert.equal((await nginx.finish()).length, requests);
    });
  }
});

test('four ranges are fetched concurrently', async (t) => {
  const content = randomBytes(8 * BLOCK + 1);
  const waiting: (() => void)[] = [];
  let most = 0;
  const server = await oddServer(t, (request, response, count) => {
    const part = sendRange(request, response, content);
    if (count === 1) {
      response.end(part);
      return;
    }
    waiting.push(() => response.end(part));
    most = Math.max(most, waiting.length);
    // A fifth concurrent request would arrive before the responses.
    if (waiting.length === 4 || count > 5) for (const send of waiting.splice(0)) send();
  });
  const fixture = await DownloadFixture.create(t);
  await fixture.download(`${server.url}/image.raw`);
  assert.equal(most, 4);
});

test('data that arrived before a lost connection is not fetched again', async (t) => {
  const content = randomBytes(2 * BLOCK);
  const server = await oddServer(t, (request, response, count) => {
    const part = sendRange(request, response, content);
    if (count !== 2) response.end(part);
    else response.write(part.subarray(0, BLOCK + 7), () => response.socket?.end());
  });
  const fixture = await DownloadFixture.create(t);
  await fixture.download(`${server.url}/image.raw`, {}, { connections: 1 });
  assert.ok((await readFile(fixture.destination)).equals(content));
  const [, all, rest] = server.asked.map(({ headers }) => headers);
  assert.deepEqual([all?.range, all?.['if-range']], [`bytes=0-${content.length - 1}`, '"one"']);
  const [, begin, end] = /^bytes=(\d+)-(\d+)$/.exec(rest?.range ?? '') ?? [];
  assert.deepEqual([rest?.['if-range'], end], ['"one"', `${content.length - 1}`]);
  assert.ok(Number(begin) > BLOCK / 2, `resumed at ${begin}`);
});

test('a lost connection to a server without ranges starts the download over', async (t) => {
  const content = randomBytes(3 * BLOCK);
  const server = await oddServer(t, (_, response, count) => {
    response.writeHead(200, { 'content-length': content.length });
    if (count === 1) response.write(content.subarray(0, BLOCK + 7), () => response.socket?.destroy());
    else response.end(content);
  });
  const fixture = await DownloadFixture.create(t);
  await fixture.download(`${server.url}/image.raw`);
  assert.ok((await readFile(fixture.destination)).equals(content));
  assert.match(fixture.logger.lines.join('\n'), /warn .*image\.raw.*retrying in/);
});

test('an object whose size is unknown is fetched to its end', async (t) => {
  for (const size of [2 * BLOCK, 2 * BLOCK + 7, 7]) {
    const content = randomBytes(size);
    const server = await oddServer(t, (_, response) => {
      response.writeHead(200, { 'transfer-encoding': 'chunked' });
      response.write(content.subarray(0, size / 2));
      response.end(content.subarray(size / 2));
    });
    const fixture = await DownloadFixture.create(t);
    const artifact = await fixture.download(`${server.url}/image.raw`);
    assert.equal(artifact.size, size);
    assert.ok((await readFile(fixture.destination)).equals(content), `${size} bytes`);
  }
});

test('many connections cause no warning from Node', async (t) => {
  const content = randomBytes(40 * BLOCK);
  const server = await oddServer(t, (request, response) => {
    response.end(sendRange(request, response, content));
  });
  const warnings: Error[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning);
  process.on('warning', onWarning);
  t.after(() => process.off('warning', onWarning));
  const fixture = await DownloadFixture.create(t);
  await fixture.download(`${server.url}/image.raw`, {}, { connections: 16, signal: t.signal });
  assert.deepEqual(warnings, []);
});

describe('an object that is replaced during the download', () => {
  const [old, young] = [randomBytes(5 * BLOCK), randomBytes(4 * BLOCK)];

  test('an object that is replaced during the download is fetched from scratch', async (t) => {
    const server = await oddServer(t, (request, response, count) => {
      if (count <= 2) response.end(sendRange(request, response, old));
      else response.end(young);
    });
    const fixture = await DownloadFixture.create(t);
    await fixture.download(`${server.url}/image.raw`, {}, { connections: 1 });
    assert.ok((await readFile(fixture.destination)).equals(young));
    assert.match(
      fixture.logger.lines.join('\n'),
      /warn .*image\.raw cannot be downloaded in ranges: it changed/,
    );
  });

  test('an object that is replaced during the download is detected even if the server ignores If-Range', async (t) => {
    const server = await oddServer(t, (request, response, count) => {
      const etag = count <= 2 ? '"one"' : '"two"';
      if (request.headers.range === undefined) response.end(young);
      else response.end(sendRange(request, response, count <= 2 ? old : young, { etag }));
    });
    const fixture = await DownloadFixture.create(t);
    await fixture.download(`${server.url}/image.raw`, {}, { connections: 1 });
    assert.ok((await readFile(fixture.destination)).equals(young));
  });
});
