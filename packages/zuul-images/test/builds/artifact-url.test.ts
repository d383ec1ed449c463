import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { artifactUrl, withoutQuery } from '../../src/builds/artifact-url.ts';

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
    test(`${url} of ${logUrl}`, () => assert.equal(artifactUrl(url, logUrl), absolute));
  }

  test('is refused if it is relative to nothing', () => {
    assert.throws(() => artifactUrl('a.qcow2', undefined), /relative.*no log_url/);
  });

  test('is refused if it is relative to what is no URL', () => {
    assert.throws(() => artifactUrl('a.qcow2', 'logs'), /cannot be read/);
  });

  test('is refused if no image can be fetched from there', () => {
    for (const url of ['file:///etc/passwd', 'javascript:alert(1)', 'ftp://host/a.qcow2']) {
      assert.throws(() => artifactUrl(url, LOGS), /and not with http:/, url);
    }
  });

  test('is refused with a password', () => {
    assert.throws(() => artifactUrl('https://me:secret@host/a', undefined), /a user or a password/);
  });
});

test('a URL is told without its signature', () => {
  assert.equal(withoutQuery('https://host/a.qcow2?X-Amz-Signature=1?2#x'), 'https://host/a.qcow2');
  assert.equal(withoutQuery('https://host/a.qcow2'), 'https://host/a.qcow2');
});
