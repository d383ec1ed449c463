// Not a unit test: it takes seconds.
import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readFile, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { Journal } from '../../src/journal/journal.ts';
import type { JournaledJob } from '../../src/journal/journal-record.ts';

async function temporaryDirectory(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'journal-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

function job(number: number, values: Partial<JournaledJob> = {}): JournaledJob {
  return {
    handle: `H:test:${number}`,
    function: 'f',
    unique: '',
    reducer: '',
    priority: 'normal',
    due: 0,
    payload: Buffer.from(`payload ${number}`),
    ...values,
  };
}

/** Returns the jobs that a server would restore. */
async function found(directory: string): Promise<JournaledJob[]> {
  const journal = await Journal.open(directory);
  const jobs = [...journal.jobs];
  await journal.close();
  return jobs;
}

test('the journal restores unfinished jobs with all bytes and in order', async (t) => {
  const directory = join(await temporaryDirectory(t), 'made', 'by-need');
  const journal = await Journal.open(directory);
  assert.deepEqual([...journal.jobs], []);
  const payload = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
  const odd = job(2, {
    function: '\xff\n"',
    unique: 'k\x80',
    reducer: 'r',
    priority: 'low',
    due: 1e12,
    payload,
  });
  for (const each of [job(1), odd, job(3, { payload: Buffer.alloc(0) })]) journal.add(each);
  journal.remove('H:test:1');
  journal.remove('H:test:99');
  await journal.synced();
  assert.ok(journal.has('H:test:2') && !journal.has('H:test:1'));
  await journal.close();
  assert.deepEqual(await found(directory), [odd, job(3, { payload: Buffer.alloc(0) })]);
});

test('a job is in the journal file once synced resolves, also with concurrent additions', async (t) => {
  const directory = await temporaryDirectory(t);
  const journal = await Journal.open(directory);
  t.after(() => journal.close());
  const path = join(directory, 'jobs.journal');
  await Promise.all(
    Array.from({ length: 20 }, async (_, number) => {
      if (number % 2 === 0) await journal.synced();
      journal.add(job(number));
      await journal.synced();
      assert.ok((await readFile(path, 'latin1')).includes(`payload ${number}\n`));
    }),
  );
});

/** Opens a journal of the jobs 1 and 2; `first` is the offset after the record of job 1. */
async function journalOfTwo(
  t: TestContext,
): Promise<{ directory: string; journal: Journal; path: string; first: number }> {
  const directory = await temporaryDirectory(t);
  const journal = await Journal.open(directory);
  journal.add(job(1));
  await journal.synced();
  const path = join(directory, 'jobs.journal');
  const { size: first } = await stat(path);
  journal.add(job(2));
  return { directory, journal, path, first };
}

test('a truncated or corrupt journal record is dropped with all later ones, and the file is backed up', async (t) => {
  const { directory, journal, path, first } = await journalOfTwo(t);
  await journal.close();
  const whole = await readFile(path);
  for (let size = first; size < whole.length; size += 1) {
    await writeFile(path, whole);
    await truncate(path, size);
    assert.deepEqual(await found(directory), [job(1)], `${size} bytes`);
  }
  const damaged = Buffer.from(whole);
  damaged.write('X', whole.length - 2);
  for (const bytes of [damaged, Buffer.concat([whole.subarray(0, first), Buffer.from('5\n')])]) {
    await writeFile(path, bytes);
    const warnings: string[] = [];
    const logger = { debug() {}, info() {}, warn: (text: string) => warnings.push(text), error: assert.fail };
    const opened = await Journal.open(directory, logger);
    assert.deepEqual([...opened.jobs], [job(1)]);
    await opened.close();
    assert.match(warnings.join(), /truncated or corrupt.*jobs\.journal\.damaged$/);
    assert.deepEqual(await readFile(`${path}.damaged`), bytes);
  }
  await writeFile(path, whole);
  await rm(`${path}.damaged`);
  assert.deepEqual(await found(directory), [job(1), job(2)]);
  await assert.rejects(stat(`${path}.damaged`), 'an intact journal is not backed up');
});

test('the journal detects a corrupt byte anywhere in a record', async (t) => {
  const { directory, journal, path, first } = await journalOfTwo(t);
  journal.remove('H:test:2');
  await journal.close();
  const whole = await readFile(path);
  const ends = whole.indexOf('\n', whole.lastIndexOf('payload')) + 1;
  for (let at = first; at < whole.length; at += 1) {
    const spoilt = Buffer.from(whole);
    spoilt.writeUInt8(whole.readUInt8(at) ^ 1, at);
    await writeFile(path, spoilt);
    assert.deepEqual(await found(directory), at < ends ? [job(1)] : [job(1), job(2)], `byte ${at}`);
  }
});

test('the journal file does not grow with finished jobs', async (t) => {
  const directory = await temporaryDirectory(t);
  const journal = await Journal.open(directory);
  journal.add(job(0));
  const payload = Buffer.alloc(300_000, 'x');
  for (let number = 1; number <= 20; number += 1) {
    journal.add(job(number, { payload }));
    await journal.synced();
    journal.remove(`H:test:${number}`);
    await journal.synced();
  }
  const { size } = await stat(join(directory, 'jobs.journal'));
  assert.ok(size < 2_000_000, `${size} bytes`);
  await journal.close();
  assert.deepEqual(await found(directory), [job(0)]);
});

test('many and large jobs survive a restart in the journal', async (t) => {
  const directory = await temporaryDirectory(t);
  const journal = await Journal.open(directory);
  const jobs = Array.from({ length: 1000 }, (_, number) =>
    job(number, { payload: Buffer.alloc(number * 10, number) }),
  );
  for (const each of jobs) journal.add(each);
  await journal.close();
  assert.deepEqual(await found(directory), jobs);
  assert.deepEqual(await found(directory), jobs);
});

test('the journal rejects a second server on its directory until the first has closed it', async (t) => {
  const directory = await temporaryDirectory(t);
  const journal = await Journal.open(directory);
  await assert.rejects(Journal.open(directory), { code: 'journal-failed', message: /another job server/ });
  await journal.close();
  assert.deepEqual(await found(directory), []);
});

test('the journal follows no symbolic link in its directory to another file', async (t) => {
  const directory = await temporaryDirectory(t);
  const target = join(directory, 'target');
  await writeFile(target, 'content');
  await symlink(target, join(directory, 'jobs.journal.new'));
  assert.deepEqual(await found(directory), []);
  await rm(join(directory, 'jobs.journal'));
  await symlink(target, join(directory, 'jobs.journal'));
  await assert.rejects(found(directory), { code: 'journal-failed' });
  assert.equal(await readFile(target, 'utf8'), 'content');
});

test('a journal whose directory is a file fails with journal-failed', async (t) => {
  const path = join(await temporaryDirectory(t), 'file');
  await writeFile(path, '');
  await assert.rejects(Journal.open(path), { code: 'journal-failed' });
});

test('a closed journal rejects jobs', async (t) => {
  const journal = await Journal.open(await temporaryDirectory(t));
  await journal.close();
  await journal.close();
  await assert.rejects(journal.synced(), { code: 'closed' });
});

test('a failed journal write rejects, and the next write includes its records', async (t) => {
  const directory = await temporaryDirectory(t);
  const journal = await Journal.open(directory);
  journal.add(job(1, { payload: Buffer.alloc(2_000_000) }));
  await journal.synced();
  await rm(directory, { recursive: true });
  journal.remove('H:test:1');
  journal.add(job(2)); // the file is large enough for a rewrite, which fails
  await assert.rejects(journal.synced(), { code: 'journal-failed', message: /ENOENT/ });
  await mkdir(directory);
  journal.add(job(3));
  await journal.synced();
  await journal.close();
  assert.deepEqual(await found(directory), [job(2), job(3)]);
});

test('a job that is added during a rewrite of the journal is not lost', async (t) => {
  const directory = await temporaryDirectory(t);
  const journal = await Journal.open(directory);
  journal.add(job(1, { payload: Buffer.alloc(2_000_000) }));
  await journal.synced();
  journal.remove('H:test:1');
  journal.add(job(2));
  const written = journal.synced();
  await setImmediate();
  journal.add(job(3));
  await Promise.all([written, journal.synced()]);
  await journal.close();
  assert.deepEqual(await found(directory), [job(2), job(3)]);
});

test('journal files are private to their user, whatever the umask and their earlier mode', async (t) => {
  const umask = process.umask(0);
  t.after(() => process.umask(umask));
  const directory = join(await temporaryDirectory(t), 'made');
  for (const after of [0o666, 0o600]) {
    const journal = await Journal.open(directory);
    journal.add(job(1));
    await journal.close();
    assert.deepEqual(
      [await modeOf(directory), await modeOf(join(directory, 'jobs.journal'))],
      [0o700, 0o600],
    );
    await chmod(join(directory, 'jobs.journal'), after);
    await writeFile(join(directory, 'jobs.journal.new'), 'half', { mode: after });
  }
});

async function modeOf(path: string): Promise<number> {
  return (await stat(path)).mode & 0o777;
}
