import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CloudError, unlessAbsent } from '../src/cloud-error.ts';

test('an error has the request, the reason of the cloud, and the remedy', () => {
  const error = new CloudError('forbidden', 'provider aws: RegisterImage', 'you may not');
  assert.equal(
    error.message,
    'provider aws: RegisterImage: you may not; give the credentials this permission',
  );
  assert.equal(error.retriable, false);
  assert.ok(new CloudError('rate-limited', 'a', 'b').retriable);
  assert.ok(new CloudError('conflict', 'a', 'b'.repeat(5000)).message.length < 600);
});

test('only what is absent is replaced', () => {
  assert.equal(unlessAbsent(new CloudError('not-found', 'a', 'b')), undefined);
  const conflict = new CloudError('conflict', 'a', 'b');
  assert.throws(() => unlessAbsent(conflict), conflict);
});
