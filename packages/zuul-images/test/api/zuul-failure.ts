import assert from 'node:assert/strict';
import { CloudError, type CloudErrorCode } from '@nodepool-builder/image-builder/plugin';

/** For `assert.rejects` and `assert.throws`: checks for a {@link CloudError} with this code and these words. */
export function zuulFailure(code: CloudErrorCode, ...words: string[]): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof CloudError, String(error));
    assert.equal(error.code, code, error.message);
    for (const word of words)
      assert.ok(error.message.includes(word), `"${word}" is not in "${error.message}"`);
    assert.doesNotMatch(error.message, /(?<!shared-)secret/i);
    return true;
  };
}
