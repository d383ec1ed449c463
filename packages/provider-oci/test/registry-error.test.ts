import assert from 'node:assert/strict';
import { test } from 'node:test';
import { registryError } from '../src/registry-error.ts';

test('the error for a protected tag names the rule', () => {
  for (const [status, code, message] of [
    [412, 'PRECONDITION', 'the tag is configured as immutable, cannot be deleted'],
    [409, 'CONFLICT', 'the manifest is locked'],
  ] as const) {
    const body = JSON.stringify({ errors: [{ code, message }] });
    const error = registryError('provider oci: DELETE manifest', { status, headers: {}, body });
    assert.equal(
      error.message,
      `provider oci: DELETE manifest: ${message} (${code}); exempt the tag from the registry's rule, or remove its lock`,
    );
  }
});
