import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CloudError, type CloudErrorCode } from '@nodepool-builder/image-builder/plugin';
import { awsCode, awsError } from '../src/aws-error.ts';

/** An error as the SDK throws it. */
function sdkError(name: string, status: number, reason = 'the reason'): Error {
  return Object.assign(new Error(reason), { name, $metadata: { httpStatusCode: status } });
}

test('AWS error codes become cloud error codes by their names, and otherwise by their status', () => {
  const expected: readonly [name: string, status: number, code: CloudErrorCode][] = [
    ['RequestThrottledException', 400, 'rate-limited'],
    ['RequestLimitExceeded', 503, 'rate-limited'],
    ['SnapshotLimitExceeded', 400, 'quota-exceeded'],
    ['UnauthorizedOperation', 403, 'forbidden'],
    ['InvalidClientTokenId', 403, 'auth-failed'],
    ['ExpiredTokenException', 400, 'auth-failed'],
    ['InvalidAMIID.NotFound', 400, 'not-found'],
    ['InvalidAMIName.Duplicate', 400, 'conflict'],
    ['InternalError', 500, 'service-unavailable'],
    ['InvalidParameterValue', 400, 'bad-request'],
  ];
  for (const [name, status, code] of expected) {
    const error = awsError('provider ci: RegisterImage', sdkError(name, status));
    assert.ok(error instanceof CloudError);
    assert.equal(error.code, code, name);
    assert.match(error.message, new RegExp(`^provider ci: RegisterImage: the reason \\(${name}\\)`));
    assert.equal(awsCode(error), name);
  }
});

test('the error for a protected AWS object says how to unprotect it', () => {
  for (const [name, reason, remedy] of [
    ['OperationNotPermitted', 'The AMI ami-1 has deregistration protection enabled.', /disable-image-dereg/],
    ['SnapshotLocked', 'The snapshot snap-1 is locked.', /unlock-snapshot/],
    ['AccessDenied', 'Access Denied because object protected by object lock.', /legal hold or the retention/],
  ] as const) {
    const { message } = awsError('provider ci: deletion', sdkError(name, 400, reason));
    assert.match(message, remedy);
    assert.ok(message.startsWith(`provider ci: deletion: ${reason} (${name}); `));
  }
});

test('an AWS request without a response fails with a retriable connection error', () => {
  const error = awsError(
    'provider ci: DescribeImages',
    Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }),
  );
  assert.ok(error instanceof CloudError);
  assert.deepEqual([error.code, error.retriable], ['connection-failed', true]);
});
