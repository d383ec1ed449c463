import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { zstdCompressSync } from 'node:zlib';
import { waitUntil } from '../../../../test/fixtures/wait-until.ts';
import { BLOCK, DownloadFixture, nginxFor, oddServer, sendRange, sha256 } from './download-fixture.ts';

const KILLS = 10;

/** Runs a download that kills itself at a response of the server, or that does not; returns how it ended. */
async function runVictim(
  { destination, stateDirectory }: DownloadFixture,
  url: string,
  responses?: number,
): Promise<unknown> {
  const victim = join(import.meta.dirname, 'download-victim.ts');
  const args = [...process.execArgv, victim, url, destination, stateDirectory];
  if (responses !== undefined) args.push(String(responses));
  return await once(spawn(process.execPath, args, { stdio: 'inherit' }), 'exit');
}

test('killed ten times, it fetches less than a tenth of the bytes again', async (t) => {
  const [nginx, fixture] = await Promise.all([nginxFor(t), DownloadFixture.create(t)]);
  const content = randomBytes(512 * BLOCK);
  const packed = zstdCompressSync(content);
  await writeFile(join(nginx.directory, 'image.raw.zst'), packed);
  const url = `${nginx.url}/image.raw.zst`;
  const responses = Math.floor(packed.length / (2 * BLOCK) / (KILLS + 1));
  for (let kill = 1; kill <= KILLS; kill += 1) {
    assert.deepEqual(await runVictim(fixture, url, responses), [null, 'SIGKILL']);
    assert.deepEqual((await fixture.left()).images, []);
  }
  assert.deepEqual(await runVictim(fixture, url), [0, null]);
  assert.equal(sha256(await readFile(fixture.destination)), sha256(content));
  const sent = (await nginx.finish()).reduce((sum, { bytes }) => sum + bytes, 0);
  assert.ok(sent < 1.1 * packed.length, `${sent} bytes were sent of ${packed.length}`);
  assert.deepEqual((await fixture.left()).state, []);
});

/** A server that lets a download come half way, and then lets it wait until it is told to go on. */
async function halfWay(t: TestContext, content: Buffer, etag: () => string = () => '"one"') {
  const fixture = await DownloadFixture.create(t);
  const server = await oddServer(t, (request, response, count) => {
    // The first byte, and ten blocks, two at a time.
    if (count !== 7) response.end(sendRange(request, response, content, { etag: etag() }));
  });
  const stop = new AbortController();
  const url = `${server.url}/image.raw`;
  const aborted = assert.rejects(
    fixture.download(url, { connections: 1 }, { signal: stop.signal }),
    (error) => error === stop.signal.reason,
  );
  await waitUntil('half of it', () => server.asked.length === 7);
  stop.abort(new Error('enough'));
  await aborted;
  return { fixture, server, url };
}

test('aborted, it leaves no file, and goes on the next time, with another signature', async (t) => {
  const content = randomBytes(20 * BLOCK);
  const { fixture, server, url } = await halfWay(t, content);
  assert.deepEqual((await fixture.left()).images, []);
  const { fetched } = await fixture.download(`${url}?X-Amz-Signature=another`, { connections: 1 });
  assert.equal(fetched, 10 * BLOCK);
  assert.equal(server.asked.at(8)?.headers.range, `bytes=${10 * BLOCK}-${12 * BLOCK - 1}`);
  assert.ok((await readFile(fixture.destination)).equals(content));
});

test('of another object under the same URL nothing is kept', async (t) => {
  const content = randomBytes(20 * BLOCK);
  let etag = '"one"';
  const { fixture, url } = await halfWay(t, content, () => etag);
  etag = '"two"';
  const { fetched } = await fixture.download(url);
  assert.equal(fetched, 20 * BLOCK);
});

test('what was on the disk when the system went down is not trusted', async (t) => {
  const content = randomBytes(20 * BLOCK);
  const { fixture, url } = await halfWay(t, content);
  const [name = ''] = await readdir(fixture.stateDirectory);
  const journal = join(fixture.stateDirectory, name, 'journal');
  const text = await readFile(journal, 'utf8');
  await writeFile(journal, text.replace(/"bootId":"[^"]*"/, '"bootId":"of an earlier boot"'));
  const { fetched } = await fixture.download(url);
  assert.equal(fetched, 20 * BLOCK);
});
