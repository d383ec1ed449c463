import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { imageData } from '../../src/testing/image-data.ts';

for (const size of [2048, 3_000_000]) {
  test(`qcow2 test data of ${size} bytes is an image without errors for qemu-img`, async (t) => {
    const path = join(await temporaryDirectory(t), 'image');
    const data = imageData('qcow2', size);
    assert.equal(data.length, size);
    await writeFile(path, data);
    execFileSync('qemu-img', ['check', '-q', '-f', 'qcow2', path]);
    const information = execFileSync('qemu-img', ['info', '--output=json', path], { encoding: 'utf8' });
    assert.partialDeepStrictEqual(JSON.parse(information), { format: 'qcow2', 'virtual-size': 1_048_576 });
  });
}

test('qcow2 test data without space for its tables is rejected', () => {
  assert.throws(() => imageData('qcow2', 30), RangeError);
});
