import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { type ClientRequest, createServer, type IncomingMessage, request, type Server } from 'node:http';
import { createServer as createTlsServer, request as requestTls } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { openUploadSource } from '../../src/index.ts';
import type { UploadSource } from '../../src/upload-source.ts';
import { temporaryDirectory } from '../temporary-directory.ts';
import { coreutilsDigest, LARGE, randomFile } from './image-file.ts';

async function certificate(t: TestContext): Promise<{ readonly key: Buffer; readonly cert: Buffer }> {
  const directory = await temporaryDirectory(t);
  const [key, cert] = [join(directory, 'key.pem'), join(directory, 'cert.pem')];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1'];
  const args = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', ...subject];
  execFileSync('openssl', [...args, '-keyout', key, '-out', cert], { stdio: 'ignore' });
  return { key: await readFile(key), cert: await readFile(cert) };
}

/** Answers with the sha512 of what it was sent, and takes its time to read it. */
function digestSlowly(incoming: IncomingMessage, answer: { end(text: string): unknown }): void {
  void (async () => {
    const hash = createHash('sha512');
    for await (const chunk of incoming as AsyncIterable<Buffer>) {
      hash.update(chunk);
      for (let turn = 0; turn < 20; turn += 1) await setImmediate();
    }
    answer.end(hash.digest('hex'));
  })();
}

async function listen(t: TestContext, server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

type Put = (t: TestContext, size: number) => Promise<ClientRequest>;

const PUTS: Readonly<Record<string, Put>> = {
  http: async (t, size) => {
    const port = await listen(t, createServer(digestSlowly));
    return request({ host: '127.0.0.1', port, method: 'PUT', headers: { 'content-length': size } });
  },
  https: async (t, size) => {
    const { key, cert } = await certificate(t);
    const port = await listen(t, createTlsServer({ key, cert }, digestSlowly));
    const headers = { 'content-length': size };
    return requestTls({ host: '127.0.0.1', port, method: 'PUT', headers, ca: cert });
  },
};

/** Each piece waits until the socket took the one before. */
async function sendPieces(source: UploadSource<'md5'>, outgoing: ClientRequest): Promise<void> {
  for await (const piece of source.pieces()) {
    await new Promise((resolve) => void outgoing.write(piece, resolve));
  }
  outgoing.end();
}

async function sendStream(source: UploadSource<'md5'>, outgoing: ClientRequest): Promise<void> {
  await pipeline(source.stream(), outgoing);
}

for (const [protocol, put] of Object.entries(PUTS)) {
  for (const send of [sendPieces, sendStream]) {
    test(`${send.name} carries the whole file to a slow server, over ${protocol}`, async (t) => {
      const { path } = await randomFile(t, LARGE + 5);
      const source = await openUploadSource(path, { digests: ['md5'] });
      t.after(() => source.close());
      const outgoing = await put(t, source.size);
      const answered = once(outgoing, 'response') as Promise<[IncomingMessage]>;
      await send(source, outgoing);
      const [answer] = await answered;
      assert.equal(await text(answer), coreutilsDigest('sha512', path));
      assert.equal((await source.digests).md5, coreutilsDigest('md5', path));
    });
  }
}
