import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import ssh2 from 'ssh2';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { withCode } from '../../../../test/fixtures/with-code.ts';
import { InstanceRecords } from '../../src/instance-records.ts';
import { generateKeyPair, identityOf } from '../../src/ssh/identity.ts';

test('a generated key that ssh2 cannot parse is replaced by another', (t) => {
  const { generateKeyPairSync } = ssh2.utils;
  const generate = t.mock.method(ssh2.utils, 'generateKeyPairSync', generateKeyPairSync);
  generate.mock.mockImplementationOnce(() => ({ private: 'no key', public: 'ssh-ed25519 AAAA' }));
  const { privateKey } = generateKeyPair('test');
  assert.ok(!(ssh2.utils.parseKey(privateKey) instanceof Error));
  assert.ok(generate.mock.callCount() >= 2);
});

test('the base image’s private key is used, and an unusable one causes an error', async (t) => {
  const directory = await temporaryDirectory(t);
  const claim = new InstanceRecords({ recordDirectory: (name) => join(directory, name) }).tryClaim('1');
  assert.ok(claim !== undefined);
  const key = join(directory, 'key');
  execFileSync('ssh-keygen', ['-q', '-t', 'ecdsa', '-N', '', '-C', '', '-f', key]);
  const line = execFileSync('cat', [`${key}.pub`], { encoding: 'utf8' }).trim();
  const { publicKey, keyFile, isOwn } = await identityOf(key, claim);
  assert.deepEqual([publicKey, keyFile, isOwn], [line, key, false]);
  await writeFile(key, 'no key');
  await assert.rejects(
    identityOf(key, claim),
    withCode('invalid-configuration', /the private key "\S+" cannot be used/),
  );
  await assert.rejects(identityOf(`${key}-gone`, claim), withCode('invalid-configuration', /ENOENT/));
});
