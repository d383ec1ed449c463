import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { appendFile, mkdir, open, rename, rm, truncate, utimes, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { withCode } from '../../../../test/fixtures/with-code.ts';
import { SteadyFile } from '../../src/hashed-reader/steady-file.ts';
import type { ImageErrorCode } from '../../src/index.ts';
import { randomFile } from './image-file.ts';

const SIZE = 10_000;

async function overwrite(path: string): Promise<void> {
  const file = await open(path, 'r+');
  await file.write('other');
  await file.close();
  await utimes(path, 1, 1); // the file system clock may not have ticked since the file was created
}

const CHANGES: readonly (readonly [
  name: string,
  change: (path: string) => Promise<void>,
  code: ImageErrorCode,
])[] = [
  ['grew', (path) => appendFile(path, 'more'), 'image-changed'],
  ['shrank', (path) => truncate(path, SIZE - 1), 'image-changed'],
  ['was overwritten', overwrite, 'image-changed'],
  [
    'was replaced',
    (path) => writeFile(`${path}.new`, '').then(() => rename(`${path}.new`, path)),
    'image-changed',
  ],
  ['was moved away', (path) => rename(path, `${path}.old`), 'image-missing'],
  ['was removed', (path) => rm(path), 'image-missing'],
  ['was removed with its directory', (path) => rm(dirname(path), { recursive: true }), 'image-missing'],
];

for (const [name, change, code] of CHANGES) {
  test(`a file that ${name} while it is read is detected`, async (t) => {
    const { path } = await randomFile(t, SIZE);
    const file = await SteadyFile.open(path);
    t.after(() => file.close());
    await file.check();
    await change(path);
    await assert.rejects(file.check(), withCode(code, new RegExp(`^"${path}"`)));
  });
}

test('a file that may be removed is read to its end, but must not change', async (t) => {
  const { path, content } = await randomFile(t, SIZE);
  const file = await SteadyFile.open(path, true);
  t.after(() => file.close());
  const writer = await open(path, 'r+');
  t.after(() => writer.close());
  await rm(path);
  await file.check();
  assert.ok((await file.read(Buffer.alloc(SIZE), 0)).equals(content));
  await writer.truncate(SIZE - 1);
  await assert.rejects(file.check(), withCode('image-changed'));
});

test('reading a file stops at its size when it was opened', async (t) => {
  const { path, content } = await randomFile(t, SIZE);
  const file = await SteadyFile.open(path);
  t.after(() => file.close());
  await appendFile(path, 'more');
  const buffer = Buffer.alloc(SIZE);
  assert.ok((await file.read(buffer, 0)).equals(content));
  assert.ok((await file.read(buffer, SIZE - 3)).equals(content.subarray(SIZE - 3)));
});

test('a file that becomes shorter while it is read is detected', async (t) => {
  const { path } = await randomFile(t, SIZE);
  const file = await SteadyFile.open(path);
  t.after(() => file.close());
  await truncate(path, 10);
  for (const position of [0, 10]) {
    await assert.rejects(
      file.read(Buffer.alloc(SIZE), position),
      withCode('image-changed', /ends after 10 of 10000 bytes/),
    );
  }
});

test('only a regular file is opened for reading', async (t) => {
  const directory = await temporaryDirectory(t);
  const fifo = join(directory, 'fifo');
  execFileSync('mkfifo', [fifo]);
  await mkdir(join(directory, 'directory'));
  await writeFile(join(directory, 'file'), '');
  for (const [name, code] of [
    ['fifo', 'image-missing'],
    ['directory', 'image-missing'],
    ['absent', 'image-missing'],
    ['file/below', 'directory-not-usable'],
  ] as const) {
    await assert.rejects(SteadyFile.open(join(directory, name)), withCode(code), name);
  }
});
