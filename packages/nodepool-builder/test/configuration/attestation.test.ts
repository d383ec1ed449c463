import assert from 'node:assert/strict';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { writeKeys } from '../../../../test/fixtures/site-key.ts';
import { trustedKeyFiles } from '../../src/configuration/attestation.ts';
import { type LoadedConfiguration, loadConfiguration } from '../../src/configuration/load.ts';
import { ConfigurationError, formatDiagnostic } from '../../src/yaml/diagnostic.ts';

/** Loads a file with these keys, in a directory with the keys `attestation` and `other`. */
async function load(t: TestContext, settings: object): Promise<LoadedConfiguration> {
  const directory = temporaryDirectory(t);
  await writeKeys(directory);
  const other = await writeKeys(directory, 'other');
  await chmod(other.key, 0o640);
  await writeFile(join(directory, 'text.pem'), 'no key', { mode: 0o600 });
  const file = join(directory, 'nodepool.yaml');
  await writeFile(file, JSON.stringify({ 'images-dir': '.', ...settings }, null, 1));
  return await loadConfiguration(file);
}

async function faultOf(t: TestContext, settings: object): Promise<string> {
  const error = await load(t, settings).catch((reason: unknown) => reason);
  assert.ok(error instanceof ConfigurationError, JSON.stringify(error));
  return error.diagnostics.map((diagnostic) => formatDiagnostic('', diagnostic)).join('\n');
}

async function warningOf(t: TestContext, settings: object): Promise<string> {
  const { warnings } = await load(t, settings);
  return warnings.map((diagnostic) => formatDiagnostic('', diagnostic)).join('\n');
}

describe('attestation', () => {
  it('the attestation section has defaults, and paths relative to the file', async (t) => {
    const { configuration, warnings } = await load(t, {
      attestation: { key: 'attestation.pem', 'public-key': 'attestation.pub' },
      'require-attestation': { 'max-age': 60 },
    });
    const directory = join(configuration.file, '..');
    const { attestation, 'require-attestation': required } = configuration;
    assert.deepEqual(attestation, {
      key: join(directory, 'attestation.pem'),
      'public-key': join(directory, 'attestation.pub'),
      'bill-of-materials': true,
    });
    assert.deepEqual(warnings, []);
    assert.deepEqual(trustedKeyFiles(required, attestation), [join(directory, 'attestation.pub')]);
  });

  it('the attestation section is rejected without a key, with two, and with a command without a public key', async (t) => {
    assert.match(await faultOf(t, { attestation: {} }), /attestation has no key; set key, or sign-command/);
    const command = { 'sign-command': ['kms-sign'], 'public-key': 'attestation.pub' };
    const both = { key: 'attestation.pem', ...command };
    assert.match(await faultOf(t, { attestation: both }), /has key and sign-command; remove one/);
    const alone = { 'sign-command': ['kms-sign'] };
    assert.match(await faultOf(t, { attestation: alone }), /sign-command needs public-key/);
    const named = { key: 'attestation.pem', 'builder-id': 'builder 1' };
    assert.match(await faultOf(t, { attestation: named }), /builder-id is not a URI/);
  });

  it('the attestation section causes a warning for a key that others may read and for a file that is not a key', async (t) => {
    const open = await warningOf(t, { attestation: { key: 'other.pem' } });
    assert.match(
      open,
      /^:4:.*key "\/.*other\.pem" can be used by other users: its mode is 640; run chmod 600 /,
    );
    assert.match(
      await warningOf(t, { attestation: { key: 'text.pem' } }),
      /attestation\.key ".*" cannot be used: it is no such key in PEM; create one/,
    );
    assert.match(
      await warningOf(t, { attestation: { key: 'missing.pem' } }),
      /attestation\.key .*missing\.pem/,
    );
    const trusted = { 'trusted-keys': ['attestation.pub', 'attestation.pem'] };
    assert.match(
      await warningOf(t, { attestation: trusted }),
      /trusted-keys\[1\].* is a private key; name the file/,
    );
  });
});

describe('require-attestation', () => {
  it('the section require-attestation needs trusted keys', async (t) => {
    assert.match(
      await faultOf(t, { 'require-attestation': { builders: ['https://a/*'] } }),
      /require-attestation names no trusted-keys, and attestation has none/,
    );
  });

  it('the section require-attestation also applies in a provider and in a Zuul image', async (t) => {
    const required = { 'trusted-keys': ['text.pem'] };
    const images = [{ name: 'debian' }];
    const provider = { name: 'd', type: 'directory', directory: '.', images };
    const zuul = {
      name: 'z',
      'api-url': 'https://zuul.example.org/api/tenant/a',
      project: 'p',
      pipelines: ['periodic'],
      job: 'j',
      artifacts: [{ format: 'qcow2', type: 'image' }],
    };
    const text = await warningOf(t, {
      providers: [{ ...provider, 'require-attestation': required }],
      'zuul-images': [{ ...zuul, 'require-attestation': required }],
    });
    assert.match(
      text,
      /providers\[0\]\.require-attestation\.trusted-keys\[0\] ".*" cannot be used: it is no such key in PEM/,
    );
    assert.match(
      text,
      /zuul-images\[0\]\.require-attestation\.trusted-keys\[0\] ".*" cannot be used: it is no such key in PEM/,
    );
  });
});
