import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withCode } from '../../../image-builder/test/with-code.ts';
import { codingOnTheWire } from '../../src/download/attempt-download.ts';

test('an encoding by the server is undone, and one that only repeats the suffix counts once', () => {
  const [packed, plain] = [new URL('https://h/a.raw.gz'), new URL('https://h/a.raw')];
  assert.equal(codingOnTheWire(plain, undefined), undefined);
  assert.equal(codingOnTheWire(plain, 'gzip'), 'gzip');
  assert.equal(codingOnTheWire(plain, 'zstd'), 'zstd');
  assert.equal(codingOnTheWire(packed, 'x-gzip'), 'gzip');
  assert.equal(codingOnTheWire(packed, 'identity'), 'gzip');
  for (const encoding of ['zstd', 'br', 'gzip, gzip']) {
    assert.throws(
      () => codingOnTheWire(packed, encoding),
      withCode('artifact-refused', /encoding/),
      encoding,
    );
  }
});
