import assert from 'node:assert/strict';
import { test } from 'node:test';
import { registryLines } from '../../../scripts/fresh-machine/registry-settings.ts';

test('only settings about reaching registries are taken from an npmrc', () => {
  const taken = [
    'registry=https://packages.example/npm/',
    '@acme:registry = https://acme.example/',
    '//packages.example/npm/:_authToken=secret',
    'https-proxy=http://proxy.example:3128',
    'cafile=/etc/ssl/example.pem',
    'ca[]="-----BEGIN CERTIFICATE-----"',
    'strict-ssl=false',
  ];
  const others = [
    '# registry=https://old.example/',
    'cache=/var/cache/npm',
    'prefix=~/.npm-global',
    'yes=false',
  ];
  assert.deepEqual(registryLines([...others, ...taken, ''].join('\n')), taken);
});
