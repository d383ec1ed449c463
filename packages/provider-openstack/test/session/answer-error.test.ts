import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { OpenStackErrorCode } from '../../src/openstack-error.ts';
import { answerError } from '../../src/session/answer-error.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');

function errorOf(
  status: number,
  body = '',
  headers: Record<string, string> = {},
): ReturnType<typeof answerError> {
  return answerError('cloud test: GET http://glance/v2/images', { status, body, headers }, { now: NOW });
}

describe('the error that an answer means', () => {
  const rows: [number, string, OpenStackErrorCode, boolean][] = [
    [200, '', 'invalid-answer', false],
    [302, '', 'invalid-answer', false],
    [400, 'Invalid disk format', 'bad-request', false],
    [401, '', 'auth-failed', false],
    [403, 'You are not authorized', 'forbidden', false],
    [403, 'Quota exceeded for resources: images', 'quota-exceeded', false],
    [404, '', 'not-found', false],
    [409, '', 'conflict', false],
    [410, '', 'not-found', false],
    [413, 'The provided image is too large.', 'too-large', false],
    [413, 'Denying attempt to upload image because it exceeds the quota: 5', 'quota-exceeded', false],
    [413, 'Resource image_size_total is over limit of 10', 'quota-exceeded', false],
    [413, 'The limit of properties has been exceeded', 'quota-exceeded', false],
    [413, 'Upload exceeds quota.', 'quota-exceeded', false],
    [415, '', 'bad-request', false],
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
    it(`${status} ${body}: ${code}`, () => {
      const error = errorOf(status, body);
      assert.deepEqual([error.code, error.retriable, error.status], [code, retriable, status]);
    });
  }

  it('names the request, the status, the words, the remedy and the request id', () => {
    const headers = { 'x-openstack-request-id': 'req-7' };
    const body = '{"error": {"message": "Nope."}}';
    assert.equal(
      errorOf(403, body, headers).message,
      'cloud test: GET http://glance/v2/images: 403 Forbidden: Nope.; give the user a role that may do this (req-7)',
    );
  });

  it('says how long to wait', () => {
    assert.equal(errorOf(503, '', { 'retry-after': '7' }).retryAfter, 7);
    assert.equal(errorOf(503, '', { 'retry-after': 'Thu, 01 Jan 2026 00:01:00 GMT' }).retryAfter, 60);
    assert.equal(errorOf(503, '', { 'retry-after': 'Wed, 31 Dec 2025 00:00:00 GMT' }).retryAfter, 0);
    assert.equal(errorOf(503, '', { 'retry-after': 'soon' }).retryAfter, undefined);
    assert.equal(errorOf(503).retryAfter, undefined);
  });

  it('413 with Retry-After is a rate limit', () => {
    assert.equal(errorOf(413, 'OverLimit Retry...', { 'retry-after': '3' }).code, 'rate-limited');
  });
});
