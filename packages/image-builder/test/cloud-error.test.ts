import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CloudError, cloudError, unlessAbsent } from '../src/cloud-error.ts';

test('a cloud error contains the request, the cloud’s reason, and the remedy', () => {
  const error = cloudError('forbidden', 'provider aws: RegisterImage', 'you may not');
  assert.equal(
    error.message,
    'provider aws: RegisterImage: you may not; give the credentials this permission',
  );
  assert.equal(error.retriable, false);
  assert.ok(cloudError('rate-limited', 'a', 'b').retriable);
  assert.ok(cloudError('conflict', 'a', 'b'.repeat(5000)).message.length < 600);
});

test('only a cloud error for an absent object is replaced by undefined', () => {
  assert.equal(unlessAbsent(cloudError('not-found', 'a', 'b')), undefined);
  const conflict = cloudError('conflict', 'a', 'b');
  assert.throws(() => unlessAbsent(conflict), conflict);
});

test('an invalid response may be retried later, but its request is not repeated at once', () => {
  assert.ok(cloudError('invalid-response', 'provider aws: DescribeImages', 'it is HTML').retriable);
  assert.equal(new CloudError('invalid-response', 'cloud west: GET /images: it is HTML').retriable, false);
});
