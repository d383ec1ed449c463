import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { appendFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { zstdCompressSync } from 'node:zlib';
import { waitUntil } from '../../../../test/fixtures/wait-until.ts';
import { Spool } from '../../src/download/spool.ts';
import { BLOCK, DownloadFixture, nginxFor, oddServer, sendRange, sha256 } from './download-fixture.ts';

const KILLS = 10;

/** Runs a download that kills itself at a response of the server, or succeeds. Returns how it ended. */
async function runVictim({ directory }: DownloadFixture, url: string, responses?: number): Promise<unknown> {
  const victim = join(import.meta.dirname, 'download-victim.ts');
  const args = [...process.execArgv, victim, url, directory];
  if (responses !== undefined) args.push(String(responses));
  return await once(spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] }), 'exit');
}

test('a download that was killed ten times fetches less than a tenth of its bytes twice', async (t) => {
  const [nginx, fixture] = await Promise.all([nginxFor(t), DownloadFixture.create(t)]);
  const content = randomBytes(512 * BLOCK);
  const packed = zstdCompressSync(content);
  await writeFile(join(nginx.directory, 'image.raw.zst'), packed);
  const url = `${nginx.url}/image.raw.zst`;
  const responses = Math.floor(packed.length / (2 * BLOCK) / (KILLS + 1));
  for (let kill = 1; kill <= KILLS; kill += 1) {
    assert.deepEqual(await runVictim(fixture, url, responses), [null, 'SIGKILL']);
  }
  assert.deepEqual(await runVictim(fixture, url), [0, null]);
  assert.equal(sha256(await readFile(join(fixture.directory, 'unpacked'))), sha256(content));
  const sent = (await nginx.finish()).reduce((sum, { bytes }) => sum + bytes, 0);
  assert.ok(sent < 1.1 * packed.length, `${sent} bytes were sent of ${packed.length}`);
});

/** Aborts a download when half of the bytes have arrived. */
async function halfWay(t: TestContext, content: Buffer, etag: () => string = () => '"one"') {
  const fixture = await DownloadFixture.create(t);
  const server = await oddServer(t, (request, response, count) => {
    // The first byte, and ten blocks in five parts.
    if (count !== 7) response.end(sendRange(request, response, content, { etag: etag() }));
  });
  const stop = new AbortController();
  const url = `${server.url}/image.raw`;
  const aborted = assert.rejects(
    fixture.download(url, {}, { connections: 1, signal: stop.signal }),
    (error) => error === stop.signal.reason,
  );
  await waitUntil('half of it', () => server.asked.length === 7);
  stop.abort(new Error('enough'));
  await aborted;
  return { fixture, server, url };
}

/** Returns the bytes on disk, according to the log of the last attempt. */
function onDisk({ logger }: DownloadFixture): number {
  return Number(/(\d+) of them are already on disk/.exec(logger.lines.at(-1) ?? '')?.[1]);
}

test('an aborted download is resumed, also with another signature', async (t) => {
  const content = randomBytes(20 * BLOCK);
  const { fixture, server, url } = await halfWay(t, content);
  await fixture.download(`${url}?X-Amz-Signature=another`, {}, { connections: 1 });
  assert.equal(onDisk(fixture), 10 * BLOCK);
  assert.equal(server.asked.at(8)?.headers.range, `bytes=${10 * BLOCK}-${12 * BLOCK - 1}`);
  assert.ok((await readFile(fixture.destination)).equals(content));
});

test('another object at the same URL is fetched from scratch', async (t) => {
  const content = randomBytes(20 * BLOCK);
  let etag = '"one"';
  const { fixture, url } = await halfWay(t, content, () => etag);
  etag = '"two"';
  await fixture.download(url);
  assert.equal(onDisk(fixture), 0);
});

test('data from before a system crash is fetched again', async (t) => {
  const content = randomBytes(20 * BLOCK);
  const { fixture, url } = await halfWay(t, content);
  const journal = join(fixture.directory, 'journal');
  const text = await readFile(journal, 'utf8');
  assert.ok(text.includes((await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()));
  await writeFile(journal, text.replace(/"bootId":"[^"]*"/, '"bootId":"of an earlier boot"'));
  await fixture.download(url);
  assert.equal(onDisk(fixture), 0);
});

test('a journal line that a crash cut short is removed', async (t) => {
  const content = randomBytes(20 * BLOCK);
  const { fixture, url } = await halfWay(t, content);
  const journal = join(fixture.directory, 'journal');
  const text = await readFile(journal, 'utf8');
  await writeFile(journal, `${text}9`);
  const object = { size: content.length, validator: '"one"' };
  await (await Spool.open(fixture.directory, object)).close();
  assert.equal(await readFile(journal, 'utf8'), text);
  await fixture.download(url);
  assert.equal(onDisk(fixture), 10 * BLOCK);
  assert.ok((await readFile(fixture.destination)).equals(content));
});

test('a damaged download journal is ignored', async (t) => {
  const content = randomBytes(20 * BLOCK);
  const { fixture, url } = await halfWay(t, content);
  await appendFile(join(fixture.directory, 'journal'), 'nonsense\n');
  await fixture.download(url);
  assert.equal(onDisk(fixture), 0);
});
