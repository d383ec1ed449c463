import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeResult, encodeResult } from '../../src/protocol/job-result.ts';

test('a job result is encoded to the same bytes as by Python’s json.dumps', () => {
  assert.equal(encodeResult('image-id', '0000000001'), '{"image-id": "0000000001"}');
  assert.equal(
    encodeResult('external-id', 'a"\\\n\u007fé😀'),
    String.raw`{"external-id": "a\"\\\n\u007f\u00e9\ud83d\ude00"}`,
  );
});

test('the manager reads the result that a builder has sent, and no field of an invalid one', () => {
  const result = { 'external-id': 'ami-1', checksum: 'c', attestations: ['{}'], packages: 'p' };
  const { 'external-id': externalId, ...more } = result;
  assert.deepEqual(decodeResult(Buffer.from(encodeResult('external-id', externalId, more))), result);
  assert.deepEqual(decodeResult(Buffer.from('[]')), {});
});
