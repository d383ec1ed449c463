import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { withCode } from '../../../../test/fixtures/with-code.ts';
import { artifactUrl, nameOf, wireUrl } from '../../src/download/artifact-url.ts';

const LOGS = 'https://logs.example.com/abc/example/abc123/';

describe('the URL of an artifact', () => {
  const cases: readonly (readonly [url: string, logUrl: string | undefined, absolute: string])[] = [
    ['https://images.example.com/a.qcow2?sig=1', undefined, 'https://images.example.com/a.qcow2?sig=1'],
    ['s3://bucket/key.raw.zst', LOGS, 's3://bucket/key.raw.zst'],
    ['images/a.qcow2', LOGS, `${LOGS}images/a.qcow2`],
    ['images/a.qcow2', LOGS.slice(0, -1), `${LOGS}images/a.qcow2`],
    ['a.qcow2', `${LOGS}?x=1`, `${LOGS}a.qcow2`],
    ['/a.qcow2', LOGS, 'https://logs.example.com/a.qcow2'],
    ['//images.example.com/a.qcow2', LOGS, 'https://images.example.com/a.qcow2'],
  ];
  for (const [url, logUrl, absolute] of cases) {
    test(`an artifact’s URL ${url} with log_url ${logUrl} becomes ${absolute}`, () =>
      assert.equal(artifactUrl(url, logUrl), absolute));
  }

  test('an artifact’s URL is rejected if it is relative and the build has no log_url', () => {
    assert.throws(() => artifactUrl('a.qcow2', undefined), /relative.*no log_url/);
  });

  test('an artifact’s URL is rejected if it is relative and log_url is not a URL', () => {
    assert.throws(() => artifactUrl('a.qcow2', 'logs'), /its URL is invalid/);
  });

  test('an artifact’s URL is rejected with another scheme', () => {
    for (const url of ['file:///etc/passwd', 'javascript:alert(1)', 'ftp://host/a.qcow2']) {
      assert.throws(() => artifactUrl(url, LOGS), /not with http:/, url);
    }
  });

  test('an artifact’s URL is rejected with a password', () => {
    assert.throws(() => artifactUrl('https://me:secret@host/a', undefined), /a user name or a password/);
  });
});

test('the printed name of a URL has neither query nor credentials', () => {
  assert.equal(nameOf('https://host/a.qcow2?X-Amz-Signature=1?2#x'), 'https://host/a.qcow2');
  assert.equal(nameOf(new URL('https://me:secret@h:8443/a.raw?sig=secret#x')), 'https://h:8443/a.raw');
});

test('a bucket URL becomes a path of the S3 endpoint', () => {
  for (const endpoint of ['https://s3.example.com/base', 'https://s3.example.com/base/']) {
    assert.equal(
      wireUrl('s3://images/a/b.raw.zst', endpoint).href,
      'https://s3.example.com/base/images/a/b.raw.zst',
    );
  }
});

test('the error for a bucket URL without an endpoint does not contain its query', () => {
  const message = /^(?!.*secret).*s3:\/\/images\/a.raw is unknown; set s3-endpoint/;
  assert.throws(
    () => wireUrl('s3://images/a.raw?sig=secret', undefined),
    withCode('invalid-configuration', message),
  );
});
