import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import ssh2 from 'ssh2';
import { generateKeyPair, identityOf } from '../../src/on-instance/identity.ts';
import { InstanceLedger } from '../../src/on-instance/ledger.ts';
import { temporaryDirectory } from '../temporary-directory.ts';
import { withCode } from '../with-code.ts';

test('every key that is made can be read', () => {
  for (let count = 0; count < 2_000; count += 1) {
    assert.ok(!(ssh2.utils.parseKey(generateKeyPair('test').privateKey) instanceof Error));
  }
});

test('the private key of the base image is used, if it can be', async (t) => {
  const directory = await temporaryDirectory(t);
  const claim = new InstanceLedger(join(directory, 'instances')).tryClaim('1');
  assert.ok(claim !== undefined);
  const key = join(directory, 'key');
  execFileSync('ssh-keygen', ['-q', '-t', 'rsa', '-N', '', '-C', '', '-f', key]);
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
