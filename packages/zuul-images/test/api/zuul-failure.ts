import assert from 'node:assert/strict';
import { ZuulError, type ZuulErrorCode } from '../../src/api/zuul-error.ts';

/** For `assert.rejects` and `assert.throws`: a {@link ZuulError} of this code whose message contains these words. */
export function zuulFailure(code: ZuulErrorCode, ...words: string[]): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof ZuulError, String(error));
    assert.equal(error.code, code, error.message);
    for (const word of words)
      assert.ok(error.message.includes(word), `"${word}" is not in "${error.message}"`);
    assert.doesNotMatch(error.message, /(?<!shared-)secret/i);
    return true;
  };
}
