import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CloudErrorCode } from '@nodepool-builder/image-builder/plugin';
import { responseError, responseMessage } from '../../src/session/request-errors.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');

function errorOf(
  status: number,
  body = '',
  headers: Record<string, string> = {},
  method = 'PUT',
): ReturnType<typeof responseError> {
  const response = { status, body, headers };
  return responseError(`cloud test: ${method} http://glance/v2/images`, response, { method, now: NOW });
}

describe('the error for a response', () => {
  const rows: [number, string, CloudErrorCode, boolean][] = [
    [200, '', 'invalid-response', false],
    [302, '', 'invalid-response', false],
    [400, 'Invalid disk format', 'bad-request', false],
    [401, '', 'auth-failed', false],
    [403, 'You are not authorized', 'forbidden', false],
    [403, 'Quota exceeded for resources: images', 'quota-exceeded', false],
    [404, '', 'not-found', false],
    [409, '', 'conflict', false],
    [410, '', 'not-found', false],
    [413, 'The provided image is too large.', 'too-large', false],
    [415, 'Image disk_format qcow2 does not match stream data raw', 'wrong-format', false],
    [413, 'Denying attempt to upload image because it exceeds the quota: 5', 'quota-exceeded', false],
    [413, 'Resource image_size_total is over limit of 10', 'quota-exceeded', false],
    [413, 'The limit of properties has been exceeded', 'quota-exceeded', false],
    [413, 'Upload exceeds quota.', 'quota-exceeded', false],
    [429, '', 'rate-limited', true],
    [500, '', 'service-unavailable', true],
    [501, '', 'bad-request', false],
    [502, '', 'service-unavailable', true],
    [503, '', 'service-unavailable', true],
    [504, '', 'service-unavailable', true],
    [507, '', 'quota-exceeded', false],
    [520, '', 'service-unavailable', true],
  ];
  for (const [status, body, code, retriable] of rows) {
    it(`a response with ${status} ${body} throws the error ${code}`, () => {
      const error = errorOf(status, body);
      assert.deepEqual([error.code, error.retriable, error.status], [code, retriable, status]);
    });
  }

  it('the error for a response has the request, the status, the message, the remedy and the request id', () => {
    const headers = { 'x-openstack-request-id': 'req-7' };
    const body = '{"error": {"message": "Nope."}}';
    assert.equal(
      errorOf(403, body, headers).message,
      'cloud test: PUT http://glance/v2/images: 403 Forbidden: Nope; give the user a role that may do this (req-7)',
    );
  });

  it('the error for a response has the delay from Retry-After', () => {
    assert.equal(errorOf(503, '', { 'retry-after': '7' }).retryAfter, 7);
    assert.equal(errorOf(503, '', { 'retry-after': 'Thu, 01 Jan 2026 00:01:00 GMT' }).retryAfter, 60);
    assert.equal(errorOf(503, '', { 'retry-after': 'Wed, 31 Dec 2025 00:00:00 GMT' }).retryAfter, 0);
    assert.equal(errorOf(503, '', { 'retry-after': 'soon' }).retryAfter, undefined);
    assert.equal(errorOf(503).retryAfter, undefined);
  });

  it('a response with 413 and Retry-After counts as a rate limit', () => {
    assert.equal(errorOf(413, 'OverLimit Retry...', { 'retry-after': '3' }).code, 'rate-limited');
  });
});

describe('the remedy of an error', () => {
  const about = (status: number, body: string, method: string): string =>
    errorOf(status, body, {}, method).message.replace(/^[^;]*(?:; )?/, '');

  it('the remedy for a list that is too long mentions no deletions or quota', () => {
    const reason = 'Requested limit 1000 exceeds the maximum limit of 100';
    for (const status of [400, 403, 413])
      assert.notEqual(errorOf(status, reason, {}, 'GET').code, 'quota-exceeded');
    assert.equal(about(413, reason, 'GET'), '');
    assert.match(
      about(413, 'Denying attempt to upload image because it exceeds the quota', 'PUT'),
      /^delete what/,
    );
    assert.match(about(413, 'The provided image is too large.', 'PUT'), /higher limit$/);
  });

  it('the remedy for a rejected upload, and only for it, names the file’s format', () => {
    assert.match(about(415, 'Unsupported', 'PUT'), /^compare the file format/);
    assert.equal(about(415, 'Unsupported', 'GET'), '');
  });
});

describe('the message in a response', () => {
  const bodies = {
    'Keystone as JSON':
      '{"error":{"code":401,"message":"The request you have made requires authentication.","title":"Unauthorized"}}',
    'Glance (webob) as HTML':
      '<html>\n <head>\n  <title>401 Unauthorized</title>\n </head>\n <body>\n  <h1>401 Unauthorized</h1>\n  The request you have made requires authentication.<br /><br />\n\n\n </body>\n</html>',
    'Glance (webob) as JSON':
      '{"message": "The request you have made requires authentication.<br /><br />\\n\\n\\n", "code": "401 Unauthorized", "title": "Unauthorized"}',
    'Glance (webob) as text': '401 Unauthorized\n\nThe request you have made requires authentication.\n\n   ',
    'Swift as HTML':
      '<html><h1>Unauthorized</h1><p>The request you have made requires authentication.</p></html>',
    'a proxy': 'The request you have made\r\n requires authentication.',
  };
  for (const [from, body] of Object.entries(bodies)) {
    it(`the message in a response from ${from} is found`, () =>
      assert.equal(responseMessage(body), 'The request you have made requires authentication.'));
  }

  it('the message in a response may be empty', () => assert.equal(responseMessage(''), ''));

  it('the message in a response is unescaped', () => {
    assert.equal(
      responseMessage('<p>Invalid value &#x27;a&#39; for &lt;name&gt; &amp; &bogus;</p>'),
      "Invalid value 'a' for <name> & &bogus;",
    );
  });

  it('the message in a response about a quota keeps Glance’s wording', () => {
    const words = 'Project is over a limit for [Resource image_size_total is over limit of 10]';
    assert.equal(responseMessage(`413 Request Entity Too Large\n\n${words}\n`), words);
  });

  it('the message in a response is shortened', () => {
    const words = responseMessage('x'.repeat(100_000));
    assert.equal(words, `${'x'.repeat(300)}…`);
  });

  it('the message in a response contains no secret that a cloud echoes', () => {
    const body = 'no such token gAAAA1: X-Auth-Token: gAAAA1, password s3cret';
    assert.equal(
      responseMessage(body, ['gAAAA1', 's3cret', '']),
      'no such token …: X-Auth-Token: …, password …',
    );
  });

  for (const secret of ['two  spaces', 'a<b>c', 'a&b']) {
    it(`the message in a response contains no secret such as "${secret}", unchanged or escaped`, () => {
      const escaped = secret.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
      assert.equal(responseMessage(`wrong password ${secret}!`, [secret]), 'wrong password …!');
      if (escaped !== secret) assert.equal(responseMessage(`wrong ${escaped}!`, [secret]), 'wrong …!');
    });
  }

  it('the message in a response contains no signature or password from a URL', () => {
    assert.equal(
      responseMessage('cannot fetch https://me:pw@store.example/image.qcow2?sig=abc&exp=1: refused'),
      'cannot fetch https://store.example/image.qcow2?… refused',
    );
  });
});
