import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  appendFile,
  mkdir,
  open,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { type Occasion, QUIET_PERIOD, SettledFiles } from '../../src/repository/settled-files.ts';
import { fileKey, type Writers } from '../../src/repository/writers.ts';

const NAME = 'image.raw';

interface Fixture {
  readonly path: string;
  readonly files: SettledFiles;
  readonly due: AbortController;
  /** Reason why the file is not an image. */
  readonly refused: string[];
  /** Result of a scan of all processes. */
  writers: Writers;
  check(occasion: Occasion): Promise<string[]>;
}

async function setUp(t: TestContext): Promise<Fixture> {
  const directory = await temporaryDirectory(t);
  const due = new AbortController();
  const fixture: Fixture = {
    path: join(directory, NAME),
    due,
    writers: { files: new Set(), complete: true },
    refused: [],
    files: new SettledFiles(directory, {
      onDue: () => due.abort(),
      onRefused: (_name, reason) => fixture.refused.push(reason),
      find: () => Promise.resolve(fixture.writers),
    }),
    check: (occasion) => fixture.files.check([NAME], () => occasion),
  };
  t.after(() => fixture.files.close());
  return fixture;
}

/** Stops the clock and the timers at the last change of the file. */
async function stopClock(t: TestContext, { path }: Fixture): Promise<void> {
  const now = Math.ceil((await stat(path)).mtimeMs);
  t.mock.timers.enable({ apis: ['Date', 'setTimeout'], now });
}

test('an image file without a writer is settled at once', async (t) => {
  const fixture = await setUp(t);
  await writeFile(fixture.path, 'content');
  assert.deepEqual(await fixture.check('moved'), [NAME]);
  assert.equal(fixture.files.get(NAME)?.size, 7);
  assert.deepEqual(await fixture.check('changed'), [], 'nothing changed since');
});

test('an image file with a writer is checked again until it is settled', async (t) => {
  const fixture = await setUp(t);
  await writeFile(fixture.path, 'content');
  fixture.writers = { files: new Set([fileKey(await stat(fixture.path))]), complete: true };
  assert.deepEqual(await fixture.check('moved'), []);
  assert.equal(fixture.files.get(NAME), undefined);
  // The timer does not keep the program alive.
  while (!fixture.due.signal.aborted) await delay(5);
  fixture.writers = { files: new Set(), complete: true };
  assert.deepEqual(await fixture.check('again'), [NAME]);
});

test('new image files do not delay the next check of one that is not settled', async (t) => {
  const fixture = await setUp(t);
  fixture.writers = { files: new Set(), complete: false };
  await writeFile(fixture.path, 'content');
  await stopClock(t, fixture);
  await fixture.check('moved');
  for (const name of ['one.raw', 'two.raw']) {
    t.mock.timers.tick(15);
    await writeFile(`${fixture.path}.${name}`, 'content');
    await fixture.files.check([`${NAME}.${name}`], () => 'moved');
  }
  assert.ok(fixture.due.signal.aborted);
});

test('a settled image file that is opened for writing is no longer settled', async (t) => {
  const fixture = await setUp(t);
  await writeFile(fixture.path, 'content');
  await fixture.check('moved');
  const handle = await open(fixture.path, 'a');
  t.after(() => handle.close());
  await handle.write('more');
  fixture.writers = { files: new Set([fileKey(await handle.stat())]), complete: true };
  assert.deepEqual(await fixture.check('changed'), [NAME]);
  assert.equal(fixture.files.get(NAME), undefined);
  assert.deepEqual(fixture.files.names(), [NAME]);
});

test('an image file that changes during the scan of processes is not settled', async (t) => {
  const directory = await temporaryDirectory(t);
  const path = join(directory, NAME);
  await writeFile(path, 'content');
  const files = new SettledFiles(directory, {
    find: async () => {
      await appendFile(path, 'the last of it');
      return { files: new Set(), complete: true };
    },
  });
  t.after(() => files.close());
  assert.deepEqual(await files.check([NAME], () => 'moved'), []);
});

test('a removed image file is reported once', async (t) => {
  const fixture = await setUp(t);
  await writeFile(fixture.path, 'content');
  await fixture.check('moved');
  await rm(fixture.path);
  assert.deepEqual(await fixture.check('moved'), [NAME]);
  assert.deepEqual(fixture.files.names(), []);
  assert.deepEqual(await fixture.check('moved'), []);
});

test('only a regular image file settles', async (t) => {
  const fixture = await setUp(t);
  const target = `${fixture.path}.target`;
  await writeFile(target, 'content');
  const others: readonly (readonly [make: () => Promise<unknown> | Buffer, reason: RegExp])[] = [
    [() => mkdir(fixture.path), /not a regular file/],
    [() => execFileSync('mkfifo', [fixture.path]), /not a regular file/],
    [() => symlink(target, fixture.path), /is a symbolic link; put the file itself there/],
    [() => symlink('/etc/shadow', fixture.path), /is a symbolic link/],
  ];
  for (const [make, reason] of others) {
    await make();
    for (const occasion of ['moved', 'found', 'again'] as const) {
      assert.deepEqual(await fixture.check(occasion), []);
    }
    assert.match(fixture.refused.splice(0)[0] ?? '', reason);
    assert.deepEqual(fixture.files.names(), []);
    await rm(fixture.path, { recursive: true });
  }
});

test('a settled image file that is replaced by a symbolic link is no longer settled', async (t) => {
  const fixture = await setUp(t);
  await writeFile(fixture.path, 'content');
  await fixture.check('moved');
  await rename(fixture.path, `${fixture.path}.target`);
  await symlink(`${fixture.path}.target`, fixture.path);
  assert.deepEqual(await fixture.check('moved'), [NAME]);
  assert.equal(fixture.files.get(NAME), undefined);
});

test('an empty image file is not settled, nor one that is emptied later', async (t) => {
  const fixture = await setUp(t);
  await writeFile(fixture.path, '');
  await stopClock(t, fixture);
  assert.deepEqual(await fixture.check('moved'), []);
  assert.deepEqual(fixture.refused, [], 'a program may just have created it');
  await utimes(fixture.path, 1, 1);
  assert.deepEqual(await fixture.check('found'), []);
  assert.deepEqual(fixture.refused, ['it is empty']);
  await appendFile(fixture.path, 'content');
  assert.deepEqual(await fixture.check('changed'), [NAME]);
  await truncate(fixture.path);
  assert.deepEqual(await fixture.check('changed'), [NAME]);
  assert.equal(fixture.files.get(NAME), undefined);
});

test('an image file that an invisible process creates does not settle with its first bytes', async (t) => {
  const fixture = await setUp(t);
  fixture.writers = { files: new Set(), complete: false };
  await writeFile(fixture.path, 'the first bytes');
  await stopClock(t, fixture);
  assert.deepEqual(await fixture.check('moved'), []);
  await rm(fixture.path);
  await fixture.check('moved');
  await writeFile(`${fixture.path}.old`, 'content');
  await utimes(`${fixture.path}.old`, 1, 1);
  await rename(`${fixture.path}.old`, fixture.path);
  assert.deepEqual(await fixture.check('moved'), [NAME], 'it was written before it was moved');
});

const QUIET_RULES: readonly (readonly [occasion: Occasion, complete: boolean, quiet: boolean])[] = [
  ['moved', true, false],
  ['moved', false, true],
  ['changed', true, false],
  ['changed', false, true],
  ['found', true, true],
];

for (const [occasion, complete, quiet] of QUIET_RULES) {
  const seen = complete ? 'all processes are visible' : 'some processes are invisible';
  test(`an image file that is ${occasion} while ${seen} ${quiet ? 'must be quiet first' : 'is settled'}`, async (t) => {
    const fixture = await setUp(t);
    fixture.writers = { files: new Set(), complete };
    await writeFile(fixture.path, 'x');
    await stopClock(t, fixture);
    assert.deepEqual(await fixture.check(occasion), quiet ? [] : [NAME]);
    if (!quiet) return;
    t.mock.timers.tick(QUIET_PERIOD - 500);
    assert.deepEqual(await fixture.check('again'), []);
    t.mock.timers.tick(500);
    assert.deepEqual(await fixture.check('again'), [NAME]);
  });
}

test('each change to an image file restarts its quiet period', async (t) => {
  const fixture = await setUp(t);
  fixture.writers = { files: new Set(), complete: false };
  await writeFile(fixture.path, 'x');
  await stopClock(t, fixture);
  await fixture.check('changed');
  t.mock.timers.tick(QUIET_PERIOD - 1);
  await appendFile(fixture.path, 'y');
  assert.deepEqual(await fixture.check('again'), []);
  t.mock.timers.tick(QUIET_PERIOD - 1);
  assert.deepEqual(await fixture.check('again'), []);
  t.mock.timers.tick(1);
  assert.deepEqual(await fixture.check('again'), [NAME]);
});
