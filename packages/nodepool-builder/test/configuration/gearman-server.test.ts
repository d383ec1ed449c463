import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { jobServers, plainJobServers } from '../../src/configuration/gearman-server.ts';
import { loadConfiguration } from '../../src/configuration/load.ts';
import { startEmbeddedGearmand } from '../../src/daemon/embedded-gearmand.ts';
import { ConfigurationError, formatDiagnostic } from '../../src/yaml/diagnostic.ts';

let directory: string;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gearman-servers-'));
  for (const name of ['builder', 'other']) makeCertificate(name);
  await writeFile(join(directory, 'nonsense.pem'), 'nonsense\n');
});
after(() => rm(directory, { recursive: true }));

function makeCertificate(name: string): void {
  const request = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1';
  const files = ['-subj', `/CN=${name}`, '-keyout', `${name}.key`, '-out', `${name}.pem`];
  execFileSync('openssl', [...request.split(' '), ...files], { cwd: directory, stdio: 'ignore' });
}

async function load(server: string): ReturnType<typeof loadConfiguration> {
  const file = join(directory, 'nodepool.yaml');
  await writeFile(file, `images-dir: /i\ngearman-servers:\n  - host: 127.0.0.1\n${server}`);
  return await loadConfiguration(file);
}

async function diagnosticsOf(server: string): Promise<string[]> {
  const error = await load(server).then(
    () => assert.fail('the configuration was accepted'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof ConfigurationError, String(error));
  return error.diagnostics.map((diagnostic) =>
    formatDiagnostic('nodepool.yaml', diagnostic).replaceAll(`${directory}/`, ''),
  );
}

const ALL = { 'ssl-ca': 'other.pem', 'ssl-cert': 'builder.pem', 'ssl-key': 'builder.key' };

function lines(keys: Readonly<Record<string, string>>): string {
  return Object.entries(keys)
    .map(([key, value]) => `    ${key}: ${value}\n`)
    .join('');
}

describe('TLS of a job server', () => {
  it('a job server’s TLS is configured with ssl-ca, ssl-cert and ssl-key', async () => {
    const { configuration, warnings } = await load(lines(ALL));
    assert.deepEqual(warnings, []);
    const files = Object.entries(ALL).map(([key, name]) => [key, join(directory, name)]);
    assert.deepEqual(configuration['gearman-servers'], [
      { host: '127.0.0.1', port: 4730, ...Object.fromEntries(files) },
    ]);
  });

  it('a job server’s TLS files are read again at each connection', async () => {
    const { configuration } = await load(lines({ ...ALL, 'ssl-server-name': 'zuul' }));
    const [server] = jobServers(configuration);
    assert.ok(typeof server?.tls === 'function');
    const first = server.tls();
    assert.equal(first.servername, 'zuul');
    makeCertificate('builder');
    const renewed = server.tls();
    assert.deepEqual(renewed.ca, first.ca);
    assert.notDeepEqual(renewed.cert, first.cert);
    assert.notDeepEqual(renewed.key, first.key);
  });

  it('TLS is rejected for the embedded job server, which does not support it', async () => {
    const { configuration } = await load(lines(ALL));
    const logger = { debug() {}, info() {}, warn() {}, error() {} };
    // Closes a server that starts regardless, so that the test ends.
    const starting = startEmbeddedGearmand(configuration, logger).then(({ jobServer }) => jobServer.close());
    await assert.rejects(starting, {
      code: 'invalid-argument',
      message: /the embedded job server at 127\.0\.0\.1:4730 does not support TLS; remove its ssl-ca/,
    });
  });

  const PEM = 'name a PEM file with a certificate that this user may read';
  const cases: readonly (readonly [
    what: string,
    keys: Record<string, string>,
    diagnostics: readonly RegExp[],
  ])[] = [
    [
      'a missing file',
      { ...ALL, 'ssl-ca': 'missing.pem' },
      [/:4:5: gearman-servers\[0\]\.ssl-ca cannot be used: ENOENT.*/],
    ],
    [
      'an authority that is not a certificate',
      { 'ssl-ca': 'nonsense.pem' },
      [new RegExp(`:4:5: .*ssl-ca cannot be used: .*; ${PEM}$`)],
    ],
    [
      'a certificate that is not one',
      { ...ALL, 'ssl-cert': 'nonsense.pem' },
      [new RegExp(`:5:5: .*ssl-cert cannot be used: .*; ${PEM}$`)],
    ],
    [
      'a key that is not one',
      { ...ALL, 'ssl-key': 'nonsense.pem' },
      [/:6:5: .*ssl-key cannot be used: .*; name a PEM file with a key without a passphrase/],
    ],
    [
      'another certificate’s key',
      { ...ALL, 'ssl-key': 'other.key' },
      [/:6:5: .*ssl-key does not match the certificate: .*; name the key of ssl-cert$/],
    ],
    [
      'a certificate without a key',
      { 'ssl-cert': 'builder.pem' },
      [/:4:5: .*ssl-cert lacks its counterpart, ssl-key; name both/],
    ],
    [
      'a key without a certificate',
      { 'ssl-key': 'builder.key' },
      [/:4:5: .*ssl-key lacks its counterpart, ssl-cert; name both/],
    ],
    [
      'a name without a certificate',
      { 'ssl-server-name': 'zuul' },
      [/:4:5: .*ssl-server-name enables TLS, but neither ssl-ca nor ssl-cert is set/],
    ],
    [
      'an empty value',
      { 'ssl-ca': '' },
      [/:4:5: gearman-servers\[0\]\.ssl-ca must be a string, but is empty; put it in quotes$/],
    ],
  ];
  for (const [what, keys, patterns] of cases) {
    it(`TLS settings of a job server with ${what} are rejected with the line`, async () => {
      const diagnostics = await diagnosticsOf(lines(keys));
      assert.equal(diagnostics.length, patterns.length, diagnostics.join('\n'));
      for (const [index, pattern] of patterns.entries()) assert.match(diagnostics[index] ?? '', pattern);
    });
  }

  for (const key of [
    'tls',
    'ssl',
    'use-ssl',
    'TLS',
    'ca',
    'cert',
    'key',
    'key-file',
    'ssl-cafile',
    'tls_ca',
    'ssl_ca',
    'ssl_cert',
    'ssl_key',
    'ssl_server_name',
    'ca-cert',
    'CA',
    'encrypted',
    'https',
    'verify',
  ]) {
    it(`the TLS key "${key}", which is not supported, is rejected`, async () => {
      assert.deepEqual(await diagnosticsOf(`    ${key}: true\n`), [
        `nodepool.yaml:4:5: gearman-servers[0].${key} is invalid; name PEM files with ssl-ca, ssl-cert and ssl-key`,
      ]);
    });
  }

  it('a job server’s TLS is off with "tls: false" and with unrelated keys', async () => {
    const { configuration, warnings } = await load(
      '    tls: false\n    ssl:\n    weight: 1\n    keepalive: 5\n',
    );
    assert.deepEqual(jobServers(configuration), [{ host: '127.0.0.1', port: 4730 }]);
    assert.equal(warnings.length, 2, 'of weight and keepalive');
  });
});

describe('the job servers of a file that is not checked', () => {
  const images = { 'images-dir': '/images' };

  it('job servers with only a host and a port are known without checking the file', () => {
    const servers = [{ host: 'one' }, { host: 'two', port: 4731 }];
    assert.deepEqual(plainJobServers({ ...images, 'gearman-servers': servers, providers: 5 }), servers);
    const embedded = [{ host: '127.0.0.1', port: 4730 }];
    for (const none of [[], null, undefined]) {
      assert.deepEqual(plainJobServers({ ...images, 'gearman-servers': none }), embedded);
    }
  });

  for (const [what, document] of Object.entries({
    'no images-dir': { 'gearman-servers': [{ host: 'one' }] },
    'a text instead of a mapping': 'images-dir',
    TLS: { ...images, 'gearman-servers': [{ host: 'one', 'ssl-ca': 'ca.pem' }] },
    'an invalid port': { ...images, 'gearman-servers': [{ host: 'one', port: 65_536 }] },
    'a server without a host': { ...images, 'gearman-servers': [{ port: 4730 }] },
    'a server that is not a mapping': { ...images, 'gearman-servers': ['one'] },
  })) {
    it(`job servers are not read from an unchecked file with ${what}`, () => {
      assert.equal(plainJobServers(document), undefined);
    });
  }
});
