import assert from 'node:assert/strict';
import { once } from 'node:events';
import { open, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { CappedFile } from '../../src/build/capped-file.ts';

const LIMIT = 40_000;
const NOTICE = /^# (\d+) bytes are missing here: the log reached its limit of 40000 bytes$/;

async function write(t: TestContext, lines: readonly string[]): Promise<{ path: string; largest: number }> {
  const path = join(await temporaryDirectory(t), 'log');
  const file = await CappedFile.open(path, 0o640, LIMIT);
  const writeLine = promisify((text: string, done: (error?: Error | null) => void) => file.write(text, done));
  let largest = 0;
  for (const line of lines) {
    await writeLine(`${line}\n`);
    largest = Math.max(largest, (await stat(path)).size);
  }
  file.end();
  await once(file, 'close');
  return { path, largest };
}

test('a capped file within its limit is unchanged', async (t) => {
  const lines = Array.from({ length: 3_999 }, (_, index) => `${index}`.padStart(9, '0'));
  const { path } = await write(t, lines);
  assert.equal(await readFile(path, 'utf8'), `${lines.join('\n')}\n`);
});

test('a capped file above its limit keeps its first and last lines, and says how many bytes were removed', async (t) => {
  const lines = Array.from({ length: 20_000 }, (_, index) => `${index}`.padStart(9, '0'));
  const { path, largest } = await write(t, lines);
  assert.ok(largest <= LIMIT, `it had ${largest} bytes`);
  const kept = (await readFile(path, 'utf8')).trimEnd().split('\n');
  const middle = kept.findIndex((line) => NOTICE.test(line));
  const [head, tail] = [kept.slice(0, middle), kept.slice(middle + 1)];
  assert.deepEqual(head, lines.slice(0, head.length));
  assert.deepEqual(tail, lines.slice(-tail.length));
  assert.ok(head.length > 900 && tail.length > 900);
  const removed = Number(NOTICE.exec(kept[middle] ?? '')?.[1]);
  assert.equal(removed, (lines.length - head.length - tail.length) * 10);
});

test('a single line above a capped file’s limit is cut', async (t) => {
  const { path, largest } = await write(t, ['first', `${'x'.repeat(1_000_000)}end`, 'last']);
  assert.ok(largest < LIMIT);
  const text = await readFile(path, 'utf8');
  assert.ok(text.startsWith('first\n'));
  assert.ok(text.endsWith('end\nlast\n'));
});

test('a capped file keeps its last lines if the process dies before it truncates the file', async (t) => {
  const path = join(await temporaryDirectory(t), 'log');
  const file = await CappedFile.open(path, 0o640, LIMIT);
  const handle = await open(path);
  t.mock.method(Object.getPrototypeOf(handle), 'truncate', () => Promise.reject(new Error('killed')));
  await handle.close();
  const failed = once(file, 'error');
  file.write(`${'line\n'.repeat(LIMIT / 5)}last\n`);
  assert.match(String(await failed), /killed/);
  const text = await readFile(path, 'utf8');
  assert.match(text, new RegExp(NOTICE, 'm'));
  assert.ok(text.endsWith('line\nlast\n'));
});
