import assert from 'node:assert/strict';
import { test } from 'node:test';
import { registryLines, sourcesOfSuite } from '../../../scripts/fresh-machine/registry-settings.ts';

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

/** Entries in both of apt's formats. */
const SOURCES = `Types: deb
# the bookworm of snapshot.debian.org
URIs: http://mirror.example/bookworm
Suites: bookworm bookworm-updates oldbookworm nodistro
Components: main
Signed-By: /usr/share/keyrings/bookworm.gpg

deb [arch=amd64] http://mirror.example/bookworm bookworm/ main
deb-src http://mirror.example/debian-security bookworm-security main
`;

test('the suite in apt’s sources is replaced, and nothing else that contains its name', () => {
  const expected = SOURCES.replace('bookworm bookworm-updates', 'trixie trixie-updates')
    .replace(' bookworm/', ' trixie/')
    .replace('bookworm-security', 'trixie-security');
  assert.equal(sourcesOfSuite(SOURCES, { hostSuite: 'bookworm', suite: 'trixie' }), expected);
});
