import assert from 'node:assert/strict';
import { it } from 'node:test';
import { jobResult } from '../../src/jobs/job-result.ts';

it('a result has the bytes that Python gives it', () => {
  assert.equal(jobResult('image-id', '0000000001'), '{"image-id": "0000000001"}');
  assert.equal(
    jobResult('external-id', 'a"\\\n\u007fé😀'),
    String.raw`{"external-id": "a\"\\\n\u007f\u00e9\ud83d\ude00"}`,
  );
});
