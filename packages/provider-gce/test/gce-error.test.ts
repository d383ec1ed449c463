import assert from 'node:assert/strict';
import { test } from 'node:test';
import { googleError, operationError } from '../src/gce-error.ts';

test('the error for a protected Google object says how to unprotect it', () => {
  for (const [reason, message, remedy] of [
    [
      'retentionPolicyNotMet',
      "Object 'b/o' is subject to bucket's retention policy and cannot be deleted.",
      /wait until the retention expires/,
    ],
    ['objectUnderActiveHold', "Object 'b/o' is under active Temporary hold.", /release the hold/],
    [
      'forbidden',
      'Invalid resource usage: deletion protection is enabled.',
      /disable its deletion protection/,
    ],
  ] as const) {
    const error = Object.assign(new Error(message), { code: 403, errors: [{ reason, message }] });
    assert.match(googleError('provider gce: DeleteObject', error, 'the key').message, remedy);
    const operation = { httpErrorStatusCode: 403, error: { errors: [{ code: reason, message }] } };
    assert.match(operationError('provider gce: deletion', operation)?.message ?? '', remedy);
  }
});
