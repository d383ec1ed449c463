// Not a unit test: reading starts threads.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import type { Progress } from '@nodepool-builder/image-builder';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { withFile } from '../../src/upload/file-data.ts';

const BYTES = randomBytes(2_500_000);

test('an image file is read as a whole or in ranges, which may repeat, and has the same digests each time', async (t) => {
  const path = join(await temporaryDirectory(t), 'image.raw');
  await writeFile(path, BYTES);
  const reported: Progress[] = [];
  const options = {
    onProgress: (progress: Progress) => void reported.push(progress),
    limit: undefined,
    signal: t.signal,
  };
  const sha256 = createHash('sha256').update(BYTES).digest('hex');
  for (const ranges of [
    [
      [0, 1_200_000],
      [1_200_000, 2_500_000],
      [1_200_000, 2_500_000],
    ],
    [[0, 2_500_000]],
    [],
  ]) {
    await withFile({ path, format: 'raw', size: BYTES.length }, options, async (file) => {
      for (const [start, end] of ranges) {
        assert.deepEqual(await buffer(file.body(start, end)), BYTES.subarray(start, end));
        assert.equal(reported.at(-1)?.done, Math.min(end ?? 0, BYTES.length - 1));
      }
      assert.equal((await file.checksums()).sha256, sha256);
    });
  }
});
