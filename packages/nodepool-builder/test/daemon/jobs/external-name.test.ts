import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { externalName } from '../../../src/daemon/jobs/upload-record.ts';

const FIELDS = {
  'image.id': '0000000007',
  'image.name': 'debian',
  timestamp: 1_479_470_531,
  'provider.name': 'cloud-a',
  'provider.region_name': null,
  'provider.max_servers': 10,
  'provider.ipv6_preferred': false,
};

describe('template-hostname', () => {
  const cases: readonly (readonly [template: string, name: string])[] = [
    ['template-{image.name}-{timestamp}', 'template-debian-1479470531'],
    ['{provider.name}/{image.name}/{image.id}', 'cloud-a/debian/0000000007'],
    ['{provider.max_servers} {provider.region_name} {provider.ipv6_preferred}', '10 None False'],
    ['{{{image.name}}}', '{debian}'],
    ['plain', 'plain'],
  ];
  for (const [template, name] of cases) {
    it(`the template-hostname ${template} becomes ${name}`, () =>
      assert.equal(externalName(template, FIELDS), name));
  }

  const invalid: readonly (readonly [template: string, reason: RegExp])[] = [
    [
      '{hostname}',
      /unknown field \{hostname\}; use \{image\.id\}, \{image\.name\}, \{timestamp\}, \{provider\.name\}/,
    ],
    ['{image.constructor}', /unknown field \{image\.constructor\}/],
    ['{timestamp:d}', /unknown field \{timestamp:d\}/],
    ['{}', /unknown field \{\}/],
    ['a{image.name', /unmatched "\{"/],
    ['a}', /unmatched "\}"/],
  ];
  for (const [template, reason] of invalid) {
    it(`the template-hostname ${template} is rejected`, () => {
      assert.throws(() => externalName(template, FIELDS), { code: 'invalid-configuration', message: reason });
    });
  }
});
