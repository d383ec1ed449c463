import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { HttpDouble } from '../../../../test/doubles/http-double.ts';
import { selfSigned } from '../../../../test/fixtures/self-signed.ts';
import type { CloudSettings } from '../../src/cloud-settings.ts';
import { Transport } from '../../src/session/transport.ts';
import { settingsWith } from '../fixtures/cloud-settings.ts';
import { failsWith } from '../fixtures/fails-with.ts';
import { SILENT } from '../fixtures/silent-logger.ts';

let directory: string;
let certificate: string;
let key: string;
let server: HttpDouble;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'openstack-tls-'));
  [certificate, key] = [join(directory, 'server.crt'), join(directory, 'server.key')];
  const pair = await selfSigned();
  await writeFile(certificate, pair.cert);
  await writeFile(key, pair.key);
  server = await HttpDouble.start(
    (_request, raw) => ({ status: 200, text: String((raw.socket as TLSSocket).authorized) }),
    { ...pair, ca: pair.cert, requestCert: true, rejectUnauthorized: false },
  );
});
after(async () => {
  await server[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});

function transportWith(tls: CloudSettings['tls']): Transport {
  const settings = settingsWith({ type: 'none', endpoint: server.url }, { tls });
  return new Transport(settings, { logger: SILENT });
}

const get = (tls: CloudSettings['tls'], url = server.url): ReturnType<Transport['send']> =>
  transportWith(tls).send({ method: 'GET', url: new URL(url) });

describe('TLS', () => {
  it('TLS rejects a certificate by an unknown authority with a remedy', async () => {
    await assert.rejects(get({ verify: true }), failsWith('certificate-untrusted', 'GET', 'cacert'));
  });

  it('TLS also rejects a certificate by an unknown authority in a PUT', async () => {
    const body = new Readable({ read: () => undefined });
    const put = transportWith({ verify: true }).put({
      url: new URL(server.url),
      headers: {},
      body: () => body,
      size: 1,
    });
    await assert.rejects(put, failsWith('certificate-untrusted', 'PUT', 'cacert'));
    assert.ok(body.destroyed);
  });

  it('TLS accepts a certificate signed by cacert', async () => {
    assert.equal((await get({ verify: true, caFile: certificate })).status, 200);
  });

  it('TLS rejects a certificate for another host name', async () => {
    const url = server.url.replace('127.0.0.1', 'localhost');
    const wrong = failsWith('certificate-untrusted', 'use the host name in the certificate');
    await assert.rejects(get({ verify: true, caFile: certificate }, url), wrong);
  });

  it('TLS accepts any certificate with verify: false', async () => {
    assert.equal((await get({ verify: false })).status, 200);
  });

  it('TLS sends the client’s certificate, in a PUT as well', async () => {
    const tls = { verify: true, caFile: certificate, certFile: certificate, keyFile: key };
    assert.equal((await get(tls)).body, 'true');
    assert.equal((await get({ verify: true, caFile: certificate })).body, 'false');
    const put = await transportWith(tls).put({
      url: new URL(server.url),
      headers: {},
      body: () => Readable.from([Buffer.from('x')]),
      size: 1,
    });
    assert.equal(put.body, 'true');
  });

  it('TLS errors name the setting whose file cannot be read or used', async () => {
    const missing = join(directory, 'missing');
    await assert.rejects(
      get({ verify: true, caFile: missing }),
      failsWith('invalid-settings', 'cacert', missing),
    );
    const keyOnly = { verify: true, certFile: key, keyFile: key };
    await assert.rejects(get(keyOnly), failsWith('invalid-settings', 'cert and key'));
  });

  it('TLS reads a corrected file without a new session', async () => {
    const late = join(directory, 'late.crt');
    const transport = transportWith({ verify: true, caFile: late });
    const request = { method: 'GET', url: new URL(server.url) } as const;
    await assert.rejects(transport.send(request), failsWith('invalid-settings'));
    await writeFile(late, await readFile(certificate));
    assert.equal((await transport.send(request)).status, 200);
  });
});
