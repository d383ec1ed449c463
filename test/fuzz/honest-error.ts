import assert from 'node:assert/strict';
import { GearmanError } from '@nodepool-builder/gearman-node';

/** Accepts typed errors about the peer; `internal` would be our own error. */
export function assertHonest(error: unknown): void {
  assert.ok(error instanceof GearmanError, `${String(error)} is no GearmanError`);
  for (let cause: unknown = error; cause instanceof GearmanError; cause = cause.cause) {
    assert.notEqual(cause.code, 'internal', cause.message);
  }
}
