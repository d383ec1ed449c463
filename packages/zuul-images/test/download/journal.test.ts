import assert from 'node:assert/strict';
import { appendFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../../../image-builder/test/temporary-directory.ts';
import { Journal } from '../../src/download/journal.ts';

const IDENTITY = { size: 1000, validator: '"one"' };

test('what was noted is there for the next one, who goes on', async (t) => {
  const path = join(await temporaryDirectory(t), 'journal');
  assert.equal(await Journal.read(path, IDENTITY), undefined);
  const first = await Journal.begin(path, IDENTITY);
  await first.add(7);
  await first.close();
  const second = await Journal.continue(path);
  await second.add(12);
  await second.close();
  assert.deepEqual(await Journal.read(path, IDENTITY), [7, 12]);
});

test('a line that was cut short does not count', async (t) => {
  const path = join(await temporaryDirectory(t), 'journal');
  await (await Journal.begin(path, IDENTITY)).close();
  await appendFile(path, '1\n12');
  assert.deepEqual(await Journal.read(path, IDENTITY), [1]);
});

test('of another object, or with lines that mean nothing, it is worth nothing', async (t) => {
  const path = join(await temporaryDirectory(t), 'journal');
  const journal = await Journal.begin(path, IDENTITY);
  await journal.add(1);
  await journal.close();
  assert.equal(await Journal.read(path, { ...IDENTITY, size: 999 }), undefined);
  assert.equal(await Journal.read(path, { ...IDENTITY, validator: '"two"' }), undefined);
  const bootId = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
  assert.ok((await readFile(path, 'utf8')).includes(bootId), 'it ends with the boot of the system');
  await appendFile(path, 'nonsense\n');
  assert.equal(await Journal.read(path, IDENTITY), undefined);
});
