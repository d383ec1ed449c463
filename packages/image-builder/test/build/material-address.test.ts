import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stripCredentials } from '../../src/build/material-address.ts';

const ADDRESSES: readonly (readonly [address: string, shown: string])[] = [
  ['https://opendev.org/zuul/nodepool', 'https://opendev.org/zuul/nodepool'],
  ['git+https://me:secret@git.example.org:8443/a@b', 'git+https://git.example.org:8443/a@b'],
  ['https://token@git.example.org/a', 'https://git.example.org/a'],
  ['https://me:s@cret@git.example.org/a', 'https://git.example.org/a'],
  ['ssh://git@git.example.org/a', 'ssh://git@git.example.org/a'],
  ['git+ssh://git:secret@git.example.org/a@b', 'git+ssh://git@git.example.org/a@b'],
  ['git@git.example.org:a/b', 'git@git.example.org:a/b'],
  [
    'https://s3.example.org/a?X-Amz-Signature=ab&X-Amz-Credential=c&partNumber=1',
    'https://s3.example.org/a?partNumber=1',
  ],
  ['https://storage.example.org/a?sig=ab%3D&sv=1#part', 'https://storage.example.org/a?sv=1#part'],
  [
    'https://swift.example.org/a?temp_url_sig=ab&temp_url_expires=1',
    'https://swift.example.org/a?temp_url_expires=1',
  ],
  ['/srv/elements', '/srv/elements'],
];

test('credentials are removed from an address', () => {
  for (const [address, shown] of ADDRESSES) assert.equal(stripCredentials(address), shown);
});
