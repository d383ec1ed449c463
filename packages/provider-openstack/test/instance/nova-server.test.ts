import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseAddress, SERVER_READER } from '../../src/instance/nova-server.ts';

const FIXED = { private: [entry('fd00::1', 6, 'fixed'), entry('10.0.0.1', 4, 'fixed')] };
const FLOATING = { private: [...FIXED.private, entry('198.51.100.1', 4, 'floating')] };

const CHOICES = [
  { what: 'no address', shown: {}, v4: undefined, v6: undefined },
  { what: 'addresses of a network', shown: { addresses: FIXED }, v4: '10.0.0.1', v6: 'fd00::1' },
  { what: 'a floating IP', shown: { addresses: FLOATING }, v4: '198.51.100.1', v6: '198.51.100.1' },
  {
    what: 'access addresses',
    shown: { addresses: FLOATING, accessIPv4: '192.0.2.1', accessIPv6: '2001:db8::1' },
    v4: '192.0.2.1',
    v6: '2001:db8::1',
  },
  {
    what: 'an access address of one kind',
    shown: { addresses: FLOATING, accessIPv4: '', accessIPv6: '2001:db8::1' },
    v4: '2001:db8::1',
    v6: '2001:db8::1',
  },
];

for (const { what, shown, v4, v6 } of CHOICES) {
  test(`a server with ${what} is reached at its preferred address`, () => {
    const server = SERVER_READER.check({ id: '1', status: 'ACTIVE', ...shown });
    assert.deepEqual([chooseAddress(server, false), chooseAddress(server, true)], [v4, v6]);
  });
}

function entry(addr: string, version: number, type: string): object {
  return { addr, version, 'OS-EXT-IPS:type': type };
}
