import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { staysWithHost } from '../../src/http/http-client.ts';

describe('a redirect stays with the host', () => {
  const cases: readonly (readonly [from: string, location: string, stays: boolean])[] = [
    ['https://zuul/api/info', '/zuul/api/info', true],
    ['https://zuul/api/info', 'https://zuul:443/api/info', true],
    ['http://zuul/api/info', 'https://zuul/api/info', true],
    ['https://zuul/api/info', 'http://zuul/api/info', false],
    ['http://zuul:9000/api/info', 'https://zuul/api/info', false],
    ['http://zuul/api/info', 'https://zuul:8443/api/info', false],
    ['https://zuul/api/info', 'https://login/', false],
    ['https://zuul/api/info', '//login/', false],
    ['https://zuul/api/info', 'https://zuul.example.com/', false],
    ['https://zuul/api/info', 'http://[', false],
  ];
  for (const [from, location, stays] of cases) {
    test(`${from} to ${location}: ${stays}`, () => assert.equal(staysWithHost(from, location), stays));
  }
});
