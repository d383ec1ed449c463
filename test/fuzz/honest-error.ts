import assert from 'node:assert/strict';
import { GearmanError } from '@nodepool-builder/gearman-node';

/** Passes if an error is one of ours that blames the peer; `internal` would be a fault of our own. */
export function assertHonest(error: unknown): void {
  assert.ok(error instanceof GearmanError, `${String(error)} is no GearmanError`);
  for (let cause: unknown = error; cause instanceof GearmanError; cause = cause.cause) {
    assert.notEqual(cause.code, 'internal', cause.message);
  }
}
