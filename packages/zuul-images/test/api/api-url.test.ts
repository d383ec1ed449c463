import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type ApiUrl, parseApiUrl } from '../../src/api/api-url.ts';
import { zuulFailure } from './zuul-failure.ts';

const FORMS: Readonly<Record<string, ApiUrl>> = {
  'https://zuul.example.com': { root: 'https://zuul.example.com/' },
  'https://zuul.example.com/': { root: 'https://zuul.example.com/' },
  'http://zuul.example.com:9000/': { root: 'http://zuul.example.com:9000/' },
  'https://example.com/zuul': { root: 'https://example.com/zuul/' },
  'https://example.com/ci/zuul/': { root: 'https://example.com/ci/zuul/' },
  'https://example.com/zuul//': { root: 'https://example.com/zuul/' },
  'https://zuul.example.com/api': { root: 'https://zuul.example.com/' },
  'https://example.com/zuul/api/': { root: 'https://example.com/zuul/' },
  'https://zuul.example.com/api/tenant/t': { root: 'https://zuul.example.com/', tenant: 't' },
  'https://zuul.example.com/api/tenant/t/builds?limit=1': { root: 'https://zuul.example.com/', tenant: 't' },
  'https://example.com/zuul/api/tenant/t/': { root: 'https://example.com/zuul/', tenant: 't' },
  'https://zuul.example.com/t/t/builds?job_name=x#row': { root: 'https://zuul.example.com/', tenant: 't' },
  'https://example.com/zuul/t/my%20tenant': { root: 'https://example.com/zuul/', tenant: 'my tenant' },
};

describe('an api-url', () => {
  for (const [text, parts] of Object.entries(FORMS)) {
    test(`the api-url ${text} is split into root and tenant`, () =>
      assert.deepEqual(parseApiUrl(text), parts));
  }

  for (const text of ['', 'zuul.example.com', 'ftp://zuul.example.com/', 'https://zuul.example.com/t/%zz/']) {
    test(`the api-url ${JSON.stringify(text)} is rejected`, () => {
      assert.throws(() => parseApiUrl(text), zuulFailure('invalid-settings', 'api-url'));
    });
  }

  test('an api-url with a password is rejected, without the password in the message', () => {
    assert.throws(
      () => parseApiUrl('https://me:secret@zuul.example.com/'),
      zuulFailure('invalid-settings', 'configure auth'),
    );
  });
});
