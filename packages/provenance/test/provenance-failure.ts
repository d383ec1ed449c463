import assert from 'node:assert/strict';
import { ProvenanceError, type ProvenanceErrorCode } from '../src/errors.ts';

/** For `assert.rejects` and `assert.throws`: checks for an error with the code and all words in its message. */
export function provenanceFailure(
  code: ProvenanceErrorCode,
  ...words: readonly string[]
): (error: unknown) => true {
  return (error) => {
    assert.ok(error instanceof ProvenanceError, String(error));
    assert.equal(error.code, code, error.message);
    for (const word of words) assert.ok(error.message.includes(word), `${error.message} lacks ${word}`);
    return true;
  };
}
