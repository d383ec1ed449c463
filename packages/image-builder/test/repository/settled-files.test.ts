import assert from 'node:assert/strict';
import { appendFile, mkdir, open, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type Occasion, QUIET_PERIOD, SettledFiles } from '../../src/repository/settled-files.ts';
import { fileKey, type Writers } from '../../src/repository/writers.ts';
import { temporaryDirectory } from '../temporary-directory.ts';

const NAME = 'image.raw';

interface Fixture {
  readonly path: string;
  readonly files: SettledFiles;
  readonly due: AbortController;
  /** What a look at all processes is to show. */
  writers: Writers;
  look(occasion: Occasion): Promise<string[]>;
}

async function setUp(t: TestContext): Promise<Fixture> {
  const directory = await temporaryDirectory(t);
  const due = new AbortController();
  const fixture: Fixture = {
    path: join(directory, NAME),
    due,
    writers: { files: new Set(), complete: true },
    files: new SettledFiles(
      directory,
      () => due.abort(),
      () => Promise.resolve(fixture.writers),
    ),
    look: (occasion) => fixture.files.look(new Map([[NAME, occasion]])),
  };
  t.after(() => fixture.files.close());
  return fixture;
}

test('a file that nobody writes is settled at once', async (t) => {
  const fixture = await setUp(t);
  await writeFile(fixture.path, 'content');
  assert.deepEqual(await fixture.look('moved'), [NAME]);
  assert.equal(fixture.files.get(NAME)?.size, 7);
  assert.deepEqual(await fixture.look('changed'), [], 'nothing changed since');
});

test('a file that is written is looked at again by itself until it is settled', async (t) => {
  const fixture = await setUp(t);
  await writeFile(fixture.path, 'content');
  fixture.writers = { files: new Set([fileKey(await stat(fixture.path))]), complete: true };
  assert.deepEqual(await fixture.look('moved'), []);
  assert.equal(fixture.files.get(NAME), undefined);
  // The timer waited for keeps no program alive.
  while (!fixture.due.signal.aborted) await delay(5);
  fixture.writers = { files: new Set(), complete: true };
  assert.deepEqual(await fixture.look('again'), [NAME]);
});

test('a settled file that someone begins to write is settled no longer', async (t) => {
  const fixture = await setUp(t);
  await writeFile(fixture.path, 'content');
  await fixture.look('moved');
  const handle = await open(fixture.path, 'a');
  t.after(() => handle.close());
  await handle.write('more');
  fixture.writers = { files: new Set([fileKey(await handle.stat())]), complete: true };
  assert.deepEqual(await fixture.look('changed'), [NAME]);
  assert.equal(fixture.files.get(NAME), undefined);
  assert.deepEqual(fixture.files.names(), [NAME]);
});

test('a file that changes while the processes are looked through is not settled', async (t) => {
  const directory = await temporaryDirectory(t);
  const path = join(directory, NAME);
  await writeFile(path, 'content');
  const files = new SettledFiles(
    directory,
    () => undefined,
    async () => {
      await appendFile(path, 'the last of it');
      return { files: new Set(), complete: true };
    },
  );
  t.after(() => files.close());
  assert.deepEqual(await files.look(new Map([[NAME, 'moved']])), []);
});

test('a removed file is gone, settled or not', async (t) => {
  const fixture = await setUp(t);
  await writeFile(fixture.path, 'content');
  await fixture.look('moved');
  await rm(fixture.path);
  assert.deepEqual(await fixture.look('moved'), [NAME]);
  assert.deepEqual(fixture.files.names(), []);
  assert.deepEqual(await fixture.look('moved'), []);
});

test('directories are no files, and links are what they lead to', async (t) => {
  const fixture = await setUp(t);
  await mkdir(fixture.path);
  assert.deepEqual(await fixture.look('moved'), []);
  await rm(fixture.path, { recursive: true });
  await writeFile(`${fixture.path}.target`, 'content');
  await symlink(`${fixture.path}.target`, fixture.path);
  assert.deepEqual(await fixture.look('moved'), [NAME]);
});

test('a link is not settled as long as what it leads to is written', async (t) => {
  const directory = await temporaryDirectory(t);
  const target = join(directory, 'target');
  const writer = await open(target, 'w');
  t.after(() => writer.close());
  await symlink(target, join(directory, NAME));
  const files = new SettledFiles(directory, () => undefined);
  t.after(() => files.close());
  assert.deepEqual(await files.look(new Map([[NAME, 'present']])), []);
  assert.equal(files.get(NAME), undefined);
});

const QUIET_RULES: readonly (readonly [
  occasion: Occasion,
  complete: boolean,
  size: number,
  quiet: boolean,
])[] = [
  ['present', true, 1, false],
  ['present', false, 1, true],
  ['moved', true, 0, false],
  ['moved', false, 1, false],
  ['moved', false, 0, true],
  ['changed', true, 1, false],
  ['changed', false, 1, true],
  ['found', true, 1, true],
];

for (const [occasion, complete, size, quiet] of QUIET_RULES) {
  const seen = complete ? 'all processes are visible' : 'some processes are invisible';
  test(`a file of ${size} bytes, ${occasion}, while ${seen}, ${quiet ? 'has to be quiet' : 'is settled'}`, async (t) => {
    const fixture = await setUp(t);
    fixture.writers = { files: new Set(), complete };
    await writeFile(fixture.path, 'x'.repeat(size));
    t.mock.timers.enable({ apis: ['Date', 'setTimeout'], now: Date.now() });
    assert.deepEqual(await fixture.look(occasion), quiet ? [] : [NAME]);
    if (!quiet) return;
    t.mock.timers.tick(QUIET_PERIOD - 500);
    assert.deepEqual(await fixture.look('again'), []);
    t.mock.timers.tick(500);
    assert.deepEqual(await fixture.look('again'), [NAME]);
  });
}

test('each change begins the quiet time anew', async (t) => {
  const fixture = await setUp(t);
  fixture.writers = { files: new Set(), complete: false };
  await writeFile(fixture.path, 'x');
  t.mock.timers.enable({ apis: ['Date', 'setTimeout'], now: Date.now() });
  await fixture.look('changed');
  t.mock.timers.tick(QUIET_PERIOD - 1);
  await appendFile(fixture.path, 'y');
  assert.deepEqual(await fixture.look('again'), []);
  t.mock.timers.tick(QUIET_PERIOD - 1);
  assert.deepEqual(await fixture.look('again'), []);
  t.mock.timers.tick(1);
  assert.deepEqual(await fixture.look('again'), [NAME]);
});
