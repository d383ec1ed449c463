import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkPeerOptions, checkServer } from '../../src/connection/peer-options.ts';

const servers = [{ host: '127.0.0.1', port: 4730 }];
const refused = { code: 'invalid-argument' };

test('a client, worker or server rejects invalid connection options', () => {
  const good = { servers, clientId: 'me', timeout: 1000, maxPacketSize: Number.POSITIVE_INFINITY };
  checkPeerOptions('the options', good, {});
  const wrong: readonly object[] = [
    { servers: [] },
    { servers: undefined },
    { clientId: 'a\0b' },
    { clientId: 7 },
    { timeout: 0 },
    { timeout: 2 ** 31 },
    { timeout: Number.NaN },
    { maxPacketSize: Number.NaN },
    { maxPacketSize: 10 },
  ];
  for (const option of wrong) {
    assert.throws(
      () => checkPeerOptions('the options', { servers, ...option }, {}),
      refused,
      JSON.stringify(option),
    );
  }
});

test('a client or worker rejects invalid server addresses', () => {
  const wrong: readonly unknown[] = [null, 'localhost', {}, { host: '' }, { host: 'h', port: 99_999 }];
  for (const server of [...wrong, { host: 'h', port: '4730' }, { host: 'h', tls: true }]) {
    assert.throws(() => checkServer(server as never), refused, JSON.stringify(server));
  }
});
