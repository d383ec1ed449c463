import assert from 'node:assert/strict';
import type { LookupAddress, LookupOptions } from 'node:dns';
import { test } from 'node:test';
import { withCode } from '../../../../test/fixtures/with-code.ts';
import { AddressGuard, type AddressGuardOptions, networkOf } from '../../src/download/address-guard.ts';

const REFUSED = withCode('artifact-refused', /is a (loopback|link-local|private) address; .*allowed-hosts/);

for (const [network, addresses] of [
  ['loopback', ['127.0.0.1', '127.255.0.9', '0.0.0.0', '0.1.2.3', '::1', '::', '0:0:0:0:0:0:0:1']],
  ['loopback', ['::ffff:127.0.0.1', '::ffff:7f00:1', '::127.0.0.1', '64:ff9b::7f00:1', '2002:7f00:1::']],
  ['link-local', ['169.254.169.254', 'fe80::1', 'fe80::1%eth0', 'febf::1', '::ffff:a9fe:a9fe']],
  ['link-local', ['64:ff9b::169.254.169.254', '::ffff:0:169.254.169.254']],
  ['private', ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', '100.64.0.1', '192.0.0.192']],
  ['private', ['fc00::1', 'fd00:ec2::254', 'fec0::1', '64:ff9b:1::1', '::ffff:10.0.0.1', '2002:a00:1::1']],
  ['private', ['224.0.0.1', '255.255.255.255', 'ff02::1']],
  [
    undefined,
    ['8.8.8.8', '172.32.0.1', '192.0.1.1', '100.128.0.1', '2001:4860:4860::8888', '::ffff:8.8.8.8'],
  ],
  [undefined, ['64:ff9b::8.8.8.8', '2002:808:808::1', 'fbff::1']],
] as const) {
  test(`the addresses ${addresses.join(', ')} are in the network ${network ?? 'internet'}`, () => {
    for (const address of addresses) assert.equal(networkOf(address), network, address);
  });
}

/** Host names and their addresses. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  'zuul.example.com': ['203.0.113.5'],
  'zuul.local': ['10.0.0.5'],
  'logs.local': ['10.0.0.6'],
  'metadata.example.com': ['169.254.169.254'],
  'rebound.example.com': ['127.0.0.1', '::1'],
  'mixed.example.com': ['fd00::1', '203.0.113.6'],
};

function guardOf(options: Partial<AddressGuardOptions> = {}): AddressGuard {
  return new AddressGuard({
    configuredUrls: ['https://zuul.example.com/api'],
    resolve: async (host) =>
      (NAMES[host] ?? []).map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    ...options,
  });
}

/** Does the lookup that Node's `net` makes before it connects. */
async function lookUp(
  guard: AddressGuard,
  host: string,
  options: LookupOptions = { all: true },
): Promise<string | LookupAddress[]> {
  return await new Promise((resolve, reject) => {
    guard.lookup(host, options, (error, found) => {
      if (error === null) resolve(found);
      else reject(error);
    });
  });
}

test('an address in a URL is checked in whatever form it is written', async () => {
  const loopback = '127.0.0.1 127.1 2130706433 0x7f.1 0177.0.0.1 0 [::1] [::ffff:127.0.0.1]';
  const others = '169.254.169.254 2852039166 [fe80::1] [64:ff9b::a9fe:a9fe] 10.1.2.3 [fd00::1]';
  for (const host of `${loopback} ${others}`.split(' ')) {
    await assert.rejects(guardOf().check(new URL(`http://${host}:8080/secret?key=value`)), REFUSED);
  }
  await guardOf().check(new URL('http://203.0.113.9/image.qcow2'));
  await guardOf().check(new URL('http://rebound.example.com/image.qcow2')); // lookup decides
});

test('a host name is checked by the addresses to which a connection would be made', async () => {
  for (const host of ['rebound.example.com', 'metadata.example.com', 'logs.local']) {
    await assert.rejects(lookUp(guardOf(), host), REFUSED);
    await assert.rejects(lookUp(guardOf(), host, { family: 4 }), REFUSED);
  }
  assert.equal(await lookUp(guardOf(), 'zuul.example.com', { family: 4 }), '203.0.113.5');
  assert.deepEqual(await lookUp(guardOf(), 'mixed.example.com'), [{ address: '203.0.113.6', family: 4 }]);
});

test('hosts in a configured URL’s network are allowed, and hosts in other networks are not', async () => {
  const guard = guardOf({ configuredUrls: ['https://zuul.local/'] });
  assert.deepEqual(await lookUp(guard, 'logs.local'), [{ address: '10.0.0.6', family: 4 }]);
  await guard.check(new URL('http://192.168.0.1/'));
  await assert.rejects(lookUp(guard, 'metadata.example.com'), REFUSED);
  await assert.rejects(lookUp(guard, 'rebound.example.com'), REFUSED);
  await assert.rejects(guard.check(new URL('http://127.0.0.1/')), REFUSED);
  const onLoopback = guardOf({ configuredUrls: ['http://127.0.0.1:9000/'] });
  await onLoopback.check(new URL('http://[::1]:8000/'));
  await assert.rejects(onLoopback.check(new URL('http://169.254.169.254/')), REFUSED);
});

test('a configured host name that cannot be resolved allows no network', async () => {
  const guard = guardOf({
    configuredUrls: ['https://unknown.example.com/'],
    resolve: (host) =>
      host === 'unknown.example.com'
        ? Promise.reject(new Error('ENOTFOUND'))
        : Promise.resolve([{ address: '10.0.0.6', family: 4 }]),
  });
  await assert.rejects(lookUp(guard, 'logs.local'), REFUSED);
});

test('hosts in allowed-hosts are allowed, by name or by address', async () => {
  const guard = guardOf({ allowedHosts: ['Logs.local', '127.0.0.1', 'fd00::1'] });
  assert.deepEqual(await lookUp(guard, 'logs.local'), [{ address: '10.0.0.6', family: 4 }]);
  assert.deepEqual(await lookUp(guard, 'rebound.example.com'), [{ address: '127.0.0.1', family: 4 }]);
  await guard.check(new URL('http://[FD00:0::1]/'));
  await assert.rejects(lookUp(guard, 'metadata.example.com'), REFUSED);
  await assert.rejects(guard.check(new URL('http://10.0.0.6/')), REFUSED);
});
