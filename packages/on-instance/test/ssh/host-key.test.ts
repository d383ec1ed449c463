import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withCode } from '../../../../test/fixtures/with-code.ts';
import { announcedKeys, fingerprint, HostKey } from '../../src/ssh/host-key.ts';

const ONE = 'AAAAC3NzaC1lZDI1NTE5AAAAIKAWEtnthEZEIaDPLHV3UzLWhaDiSMlKSKDBwMtI29BX';
const OTHER = 'AAAAC3NzaC1lZDI1NTE5AAAAIGFGwUNSGBCkNHLT+M6LbzDjqXWFSFrOEtRnDcPMOjbT';

function console(...keys: string[]): string {
  const lines = keys.map((key) => `ssh-ed25519 ${key} root@host\r\n`).join('');
  return `boot\r\n-----BEGIN SSH HOST KEY KEYS-----\r\n${lines}-----END SSH HOST KEY KEYS-----\r\nlogin: `;
}

test('the announced host keys are read from the console log’s last complete block', () => {
  assert.deepEqual(announcedKeys('no block'), new Set());
  assert.deepEqual(announcedKeys(console(ONE) + console(OTHER)), new Set([fingerprint(OTHER)]));
  assert.deepEqual(announcedKeys(console(ONE, OTHER)), new Set([fingerprint(ONE), fingerprint(OTHER)]));
  assert.deepEqual(announcedKeys(console(ONE).slice(0, 80)), new Set());
});

test('a host key’s fingerprint is in OpenSSH’s notation', () => {
  // ssh-keygen -l
  assert.equal(fingerprint(ONE), 'SHA256:w4/KFPz8b6jwv/jtPD8Lli8tfvhsiBOLIWFYAQYKW84');
});

test('the host key of the first login is pinned, and a later console log confirms or contradicts it', () => {
  const key = new HostKey();
  key.check(ONE);
  key.pinned = ONE;
  assert.ok(!key.isConfirmed);
  assert.throws(() => key.check(OTHER), withCode('host-key-changed'));
  key.learn(new Set());
  assert.throws(() => key.learn(announcedKeys(console(OTHER))), withCode('host-key-changed'));
  key.learn(announcedKeys(console(ONE)));
  assert.ok(key.isConfirmed);
});

test('a host key that the console does not announce is rejected before it is pinned', () => {
  const key = new HostKey();
  key.learn(announcedKeys(console(ONE)));
  assert.throws(() => key.check(OTHER), withCode('login-refused'));
  key.check(ONE);
  key.pinned = ONE;
  assert.ok(key.isConfirmed);
});
