import assert from 'node:assert/strict';
import { createHash, createPublicKey, generateKeyPairSync } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { temporaryDirectory } from '../../../test/fixtures/scratch-directory.ts';
import { readTrustedKeys } from '../src/keys.ts';
import { provenanceFailure } from './provenance-failure.ts';
import { KEY_TYPES, writeKeys } from './site-fixture.ts';

describe('trusted keys', () => {
  for (const [type, create] of Object.entries(KEY_TYPES)) {
    test(`a trusted ${type} key is read from PEM`, async (t) => {
      const { publicKey } = await writeKeys(temporaryDirectory(t), 'site', create);
      const [key] = await readTrustedKeys([publicKey]);
      const der = createPublicKey(await readFile(publicKey)).export({ type: 'spki', format: 'der' });
      assert.equal(key?.keyId, createHash('sha256').update(der).digest('hex'));
      assert.equal(key?.file, publicKey);
    });
  }

  test('a private key among the trusted keys is rejected and not quoted', async (t) => {
    const { key } = await writeKeys(temporaryDirectory(t));
    const lines = (await readFile(key, 'utf8')).split('\n');
    await assert.rejects(readTrustedKeys([key]), (error: Error) => {
      assert.ok(!error.message.includes(lines[1] ?? ''));
      return provenanceFailure('key-unusable', key, 'is a private key', 'openssl pkey -pubout')(error);
    });
  });

  test('trusted keys that cannot be used are rejected with the reason', async (t) => {
    const path = join(temporaryDirectory(t), 'key.pub');
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey;
    const curve = generateKeyPairSync('ec', { namedCurve: 'secp521r1' }).publicKey;
    const x25519 = generateKeyPairSync('x25519').publicKey;
    for (const [content, words] of [
      ['', 'no such key in PEM'],
      ['-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n', 'no such key in PEM'],
      [rsa.export({ type: 'spki', format: 'pem' }), 'its type is rsa'],
      [curve.export({ type: 'spki', format: 'pem' }), 'its type is ec secp521r1'],
      [x25519.export({ type: 'spki', format: 'pem' }), 'its type is x25519'],
      ['x'.repeat(100_000), 'larger than'],
    ] as const) {
      await writeFile(path, content);
      await assert.rejects(readTrustedKeys([path]), provenanceFailure('key-unusable', path, words));
    }
    await assert.rejects(
      readTrustedKeys([`${path}.missing`]),
      provenanceFailure('key-unusable', 'not exist'),
    );
  });
});
