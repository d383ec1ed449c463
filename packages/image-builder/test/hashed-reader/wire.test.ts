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
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { HashedReader } from '../../src/index.ts';
import { coreutilsDigest, LARGE, randomFile } from './image-file.ts';

async function certificate(t: TestContext): Promise<{ readonly key: Buffer; readonly cert: Buffer }> {
  const directory = await temporaryDirectory(t);
  const [key, cert] = [join(directory, 'key.pem'), join(directory, 'cert.pem')];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1'];
  const args = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', ...subject];
  execFileSync('openssl', [...args, '-keyout', key, '-out', cert], { stdio: 'ignore' });
  return { key: await readFile(key), cert: await readFile(cert) };
}

/** Responds with the sha512 of the body, which it reads slowly. */
function digestSlowly(incoming: IncomingMessage, response: { end(text: string): unknown }): void {
  void (async () => {
    const hash = createHash('sha512');
    for await (const chunk of incoming as AsyncIterable<Buffer>) {
      hash.update(chunk);
      for (let turn = 0; turn < 20; turn += 1) await setImmediate();
    }
    response.end(hash.digest('hex'));
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

for (const [protocol, put] of Object.entries(PUTS)) {
  test(`a slow server gets the whole file over ${protocol}`, async (t) => {
    const { path } = await randomFile(t, LARGE + 5);
    const reader = await HashedReader.open(path);
    t.after(() => reader.close());
    const outgoing = await put(t, reader.size);
    const responded = once(outgoing, 'response') as Promise<[IncomingMessage]>;
    for await (const piece of reader.pieces()) {
      await new Promise((resolve) => void outgoing.write(piece, resolve));
    }
    outgoing.end();
    const [response] = await responded;
    assert.equal(await text(response), coreutilsDigest('sha512', path));
    assert.equal((await reader.checksums).md5, coreutilsDigest('md5', path));
  });
}
