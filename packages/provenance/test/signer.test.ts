import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { temporaryDirectory } from '../../../test/fixtures/temporary-directory.ts';
import { readPublicKey } from '../src/keys.ts';
import { openSigner, verifySignature } from '../src/signer.ts';
import { provenanceFailure } from './provenance-failure.ts';
import { KEY_TYPES, type KeyFiles, writeKeys } from './site-fixture.ts';

const DATA = Buffer.from('data');

/** Commands of OpenSSL that sign their standard input. */
const COMMANDS: Readonly<Record<keyof typeof KEY_TYPES, string>> = {
  // pkeyutl needs a file for Ed25519
  Ed25519: 'cat > "$0.data"; exec openssl pkeyutl -sign -rawin -inkey "$0" -in "$0.data"',
  'ECDSA P-256': 'exec openssl dgst -sha256 -sign "$0"',
  'ECDSA P-384': 'exec openssl dgst -sha384 -sign "$0"',
};

for (const [type, create] of Object.entries(KEY_TYPES)) {
  describe(`a signer with ${type}`, () => {
    test(`a ${type} signer signs with a key file`, async (t) => {
      const { key, publicKey } = await writeKeys(await temporaryDirectory(t), 'site', create);
      const signer = await openSigner({ key });
      const trusted = await readPublicKey(publicKey);
      assert.equal(signer.keyId, trusted.keyId);
      assert.equal(signer.keyFile, key);
      const signature = await signer.sign(DATA);
      assert.ok(verifySignature(trusted.key, DATA, signature));
      assert.ok(!verifySignature(trusted.key, Buffer.from('date'), signature));
    });

    test(`a ${type} signer signs with a command`, async (t) => {
      const { key, publicKey } = await writeKeys(await temporaryDirectory(t), 'site', create);
      const signCommand = ['sh', '-c', COMMANDS[type as keyof typeof KEY_TYPES], key];
      const signer = await openSigner({ 'sign-command': signCommand, 'public-key': publicKey });
      assert.equal(signer.keyFile, undefined);
      const { key: trusted, keyId } = await readPublicKey(publicKey);
      assert.equal(signer.keyId, keyId);
      assert.ok(verifySignature(trusted, DATA, await signer.sign(DATA)));
    });
  });
}

describe('a private key', () => {
  test('a private key is accepted in the format that "openssl ecparam" writes', async (t) => {
    const path = join(await temporaryDirectory(t), 'key.pem');
    const pem = execFileSync('openssl', ['ecparam', '-name', 'prime256v1', '-genkey', '-noout']);
    await writeFile(path, pem, { mode: 0o600 });
    await (await openSigner({ key: path })).sign(DATA);
  });

  test('a private key that cannot be read or used causes an error that does not quote it', async (t) => {
    const directory = await temporaryDirectory(t);
    const { key, publicKey } = await writeKeys(directory);
    const pem = await readFile(key, 'utf8');
    const quotes = pem.split('\n')[1] ?? '';
    const encrypted = createPrivateKey(pem).export({
      type: 'pkcs8',
      format: 'pem',
      cipher: 'aes-256-cbc',
      passphrase: 'secret',
    });
    const path = join(directory, 'other.pem');
    for (const [content, words] of [
      [pem.slice(0, 60), 'no such key in PEM'],
      [await readFile(publicKey, 'utf8'), 'no such key in PEM'],
      [encrypted, 'is encrypted'],
    ] as const) {
      await writeFile(path, content, { mode: 0o600 });
      await assert.rejects(openSigner({ key: path }), (error: Error) => {
        assert.ok(!error.message.includes(quotes));
        return provenanceFailure('key-unusable', 'the private key', path, words)(error);
      });
    }
    const missing = join(directory, 'missing.pem');
    await assert.rejects(openSigner({ key: missing }), provenanceFailure('key-unusable', missing));
    await chmod(key, 0o644);
    await assert.rejects(openSigner({ key }), provenanceFailure('key-unusable', key, 'other users', 'chmod'));
  });

  test('a private key that does not belong to the public key is rejected', async (t) => {
    const directory = await temporaryDirectory(t);
    const [{ key }, { publicKey }] = [await writeKeys(directory), await writeKeys(directory, 'other')];
    await assert.rejects(
      openSigner({ key, 'public-key': publicKey }),
      provenanceFailure('key-unusable', key, publicKey, 'does not belong'),
    );
  });

  test('a signer requires a private key, or a command with a public key', async () => {
    for (const settings of [{}, { 'sign-command': ['true'] }, { 'public-key': 'key.pub' }]) {
      await assert.rejects(openSigner(settings), provenanceFailure('key-unusable', 'sign-command'));
    }
  });
});

describe('a sign-command', () => {
  const faults: readonly (readonly [script: string, words: string])[] = [
    ['cat > /dev/null; exit 3', 'exited with 3'],
    ['echo secret >&2; exit 1', 'exited with 1'],
    ['exit 4', 'exited with 4'],
    ['kill -KILL $$', 'was killed by SIGKILL'],
    ['cat > /dev/null', 'wrote 0 bytes'],
    ['echo secret', 'wrote 7 bytes'],
    ['yes secret', 'wrote more than 65536 bytes'],
  ];
  for (const [script, words] of faults) {
    test(`a sign-command that runs "${script}" causes an error`, async (t) => {
      const { publicKey } = await writeKeys(await temporaryDirectory(t));
      const signer = await openSigner({ 'sign-command': ['sh', '-c', script], 'public-key': publicKey });
      await assert.rejects(signer.sign(DATA), (error: Error) => {
        assert.ok(!error.message.includes('secret'));
        assert.ok('retriable' in error && error.retriable === true);
        return provenanceFailure('signing-failed', 'sign-command "sh"', words)(error);
      });
    });
  }

  test('a sign-command that is not installed causes an error', async (t) => {
    const { publicKey } = await writeKeys(await temporaryDirectory(t));
    const signer = await openSigner({
      'sign-command': ['no-such-command', 'secret'],
      'public-key': publicKey,
    });
    await assert.rejects(
      signer.sign(DATA),
      provenanceFailure('signing-failed', 'no-such-command', 'is not installed'),
    );
  });

  test('a sign-command that signs with another key causes an error', async (t) => {
    const directory = await temporaryDirectory(t);
    const [{ publicKey }, other] = [await writeKeys(directory), await writeKeys(directory, 'other')];
    const signCommand = ['sh', '-c', COMMANDS.Ed25519, other.key];
    const signer = await openSigner({ 'sign-command': signCommand, 'public-key': publicKey });
    await assert.rejects(
      signer.sign(DATA),
      provenanceFailure('signing-failed', publicKey, '64 bytes', 'ECDSA in DER'),
    );
  });

  test('a sign-command is killed with its children when the signal aborts', async (t) => {
    const { publicKey }: KeyFiles = await writeKeys(await temporaryDirectory(t));
    const reason = new Error('stop');
    const aborting = await openSigner({
      'sign-command': ['sh', '-c', 'sleep 1000 & wait'],
      'public-key': publicKey,
    });
    const aborted = new AbortController();
    const signing = aborting.sign(DATA, aborted.signal);
    setImmediate(() => aborted.abort(reason));
    await assert.rejects(signing, reason);
  });
});
