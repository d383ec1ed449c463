import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  AuthenticationError,
  AuthenticationRequiredError,
  CredentialUnavailableError,
} from '@azure/identity';
import { CloudError } from '@nodepool-builder/image-builder/plugin';
import { azureError } from '../src/azure-error.ts';

function codeOf(error: Error): string {
  const failure = azureError('provider azure: upload', error);
  return failure instanceof CloudError ? `${failure.code}, ${failure.retriable}` : String(failure);
}

test('credentials that Microsoft Entra ID rejects are not tried again', () => {
  const refused = { error: 'invalid_client', error_description: 'AADSTS7000215: Invalid client secret' };
  assert.equal(codeOf(new AuthenticationError(401, refused)), 'auth-failed, false');
  assert.equal(codeOf(new CredentialUnavailableError('no environment variables')), 'auth-failed, false');
});

test('a token that Microsoft Entra ID cannot issue now is requested again', () => {
  const message = 'network_error: Network request failed';
  assert.equal(codeOf(new AuthenticationRequiredError({ scopes: [], message })), 'service-unavailable, true');
  const unresolved = new CredentialUnavailableError('endpoints_resolution_error: no such host');
  assert.equal(codeOf(unresolved), 'service-unavailable, true');
  assert.equal(codeOf(new AuthenticationError(503, 'busy')), 'service-unavailable, true');
});

test('an error that Azure itself calls retriable is retriable', () => {
  const members = { name: 'RestError', statusCode: 409, code: 'RetryableError' };
  assert.equal(codeOf(Object.assign(new Error('try again'), members)), 'service-unavailable, true');
});

test('the error for a locked Azure object says how to unlock it', () => {
  for (const [code, reason, remedy] of [
    [
      'ScopeLocked',
      'The scope cannot perform delete operation because following scope(s) are locked.',
      /az lock list/,
    ],
    ['OperationNotAllowed', 'BlockDeletionBeforeEndOfLife is set.', /blockDeletionBeforeEndOfLife.*to false/],
    ['BlobImmutableDueToPolicy', 'The blob is immutable due to a policy.', /end the immutability policy/],
  ] as const) {
    const error = Object.assign(new Error(reason), { name: 'RestError', code, statusCode: 409 });
    const failure = azureError('provider azure: deletion', error);
    assert.ok(failure instanceof CloudError);
    assert.match(failure.message, remedy);
  }
});
