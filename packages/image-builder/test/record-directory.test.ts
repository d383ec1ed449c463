import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryDirectory } from '../../../test/fixtures/temporary-directory.ts';
import { DamagedRecordError, RecordDirectory } from '../src/record-directory.ts';

const SCHEMA = { type: 'object', required: ['step'], properties: { step: { type: 'integer' } } } as const;

async function openDirectory(t: TestContext): Promise<RecordDirectory<typeof SCHEMA>> {
  return new RecordDirectory(join(await temporaryDirectory(t), 'records'), SCHEMA, ['.key']);
}

test('the first record creates its directory, which only this user can read', async (t) => {
  const records = await openDirectory(t);
  assert.deepEqual([await records.names(), await records.read('a')], [[], undefined]);
  await records.write('a', { step: 1 });
  await records.write('a', { step: 2 });
  assert.deepEqual([await records.names(), await records.read('a')], [['a'], { step: 2 }]);
  assert.equal(await readFile(records.file('a'), 'utf8'), '{\n  "step": 2\n}\n');
  assert.equal((await stat(records.file('a'))).mode & 0o7777, 0o600);
  assert.equal((await stat(records.path)).mode & 0o7777, 0o700);
});

test('a damaged record causes an error with its path and the reason', async (t) => {
  const records = await openDirectory(t);
  await mkdir(records.path);
  for (const [text, reason] of [
    ['{"step"', 'it is not JSON'],
    ['{"step": "1"}', 'step is not a whole number'],
  ] as const) {
    await writeFile(records.file('a'), text);
    await assert.rejects(records.read('a'), (error) => {
      assert.ok(error instanceof DamagedRecordError);
      assert.equal(error.message, `"${records.file('a')}" is damaged: ${reason}`);
      return true;
    });
  }
});

test('record names include half-written files, and all files with a name are removed together', async (t) => {
  const records = await openDirectory(t);
  await mkdir(records.path);
  for (const file of ['a.json.new', 'b.key', 'c.key.new', 'd.json', 'd.key', 'foreign.txt']) {
    await writeFile(join(records.path, file), '');
  }
  const names = await records.names();
  assert.deepEqual(names.toSorted(), ['a', 'b', 'c', 'd']);
  for (const name of names) await records.remove(name);
  assert.deepEqual(await readdir(records.path), ['foreign.txt']);
});

test('a file whose name is not UTF-8 is not a record', async (t) => {
  const directory = await temporaryDirectory(t);
  await writeFile(
    Buffer.concat([Buffer.from(`${directory}/a`), Buffer.from([0xe9]), Buffer.from('.json')]),
    '{}',
  );
  assert.deepEqual(await new RecordDirectory(directory, SCHEMA).names(), []);
});
