import assert from 'node:assert/strict';
import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { GrownLog } from '../../../scripts/quickstart/grown-log.ts';

test('a growing log is read line by line, however it is cut', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'grown-log-'));
  t.after(() => rm(directory, { recursive: true }));
  const file = join(directory, 'log');
  await writeFile(file, 'first\nsec');
  const log = new GrownLog(file);
  assert.deepEqual(await log.newLines(), ['first']);
  assert.deepEqual(await log.newLines(), []);
  const rest = Buffer.from('ond: ü\n');
  await appendFile(file, rest.subarray(0, 6)); // in the middle of a character
  assert.deepEqual(await log.newLines(), []);
  await appendFile(file, rest.subarray(6));
  assert.deepEqual(await log.newLines(), ['second: ü']);
});
