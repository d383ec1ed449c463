import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { open, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../../../test/fixtures/temporary-directory.ts';
import { writeSparse } from '../src/sparse.ts';

const UNIT = 16 * 1024;

test('only units of zeros become holes in a sparse copy', async (t) => {
  const path = join(await temporaryDirectory(t), 'file');
  const almost = Buffer.alloc(UNIT);
  almost[UNIT - 1] = 1;
  const content = Buffer.concat([
    Buffer.alloc(2 * UNIT),
    randomBytes(UNIT),
    Buffer.alloc(UNIT),
    almost,
    Buffer.alloc(3 * UNIT),
    randomBytes(10),
  ]);
  const file = await open(path, 'w');
  t.after(() => file.close());
  assert.equal(await writeSparse(file, content, UNIT), 2 * UNIT + 10);
  assert.ok((await readFile(path)).equals(Buffer.concat([Buffer.alloc(UNIT), content])));
  assert.equal((await stat(path)).blocks * 512, 2 * UNIT + 4096);
});
