import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, readdir, readFile, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { mountTmpfs, temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { BuildLog, type BuildLogOptions } from '../../src/build/build-log.ts';

const HEADER = '# image-name: "debian"\n# image-id: debian-1\n';

function openLog(directory: string, options: Partial<BuildLogOptions> = {}): Promise<BuildLog> {
  return BuildLog.open({
    directory,
    imageId: 'debian-1',
    imageName: 'debian',
    onLine: undefined,
    logger: undefined,
    ...options,
  });
}

test('each line of a build log is written, and passed to onLine', async (t) => {
  const directory = await temporaryDirectory(t);
  const told: string[] = [];
  const log = await openLog(directory, { onLine: (line) => told.push(line) });
  for (const line of ['one', 'two']) await log.write(line);
  await log.close();
  assert.equal(log.path, join(directory, 'debian-1.log'));
  assert.equal(await readFile(log.path, 'utf8'), `${HEADER}one\ntwo\n`);
  assert.deepEqual(told, ['one', 'two']);
});

test('a second attempt at an image continues the log of the first', async (t) => {
  const directory = join(await temporaryDirectory(t), 'made', 'on', 'demand');
  for (const line of ['first', 'second']) {
    const log = await openLog(directory);
    await log.write(line);
    await log.close();
  }
  assert.equal(await readFile(join(directory, 'debian-1.log'), 'utf8'), `${HEADER}first\n${HEADER}second\n`);
});

test('a write to a build log resolves once the disk has caught up', async (t) => {
  const log = await openLog(await temporaryDirectory(t));
  const line = 'x'.repeat(10_000);
  let held: Promise<void> | undefined;
  for (let count = 0; held === undefined && count < 1_000; count += 1) held = log.write(line);
  assert.ok(held, 'ten megabytes were taken without a pause');
  await held;
  assert.equal(log.write('once more'), undefined);
  await log.close();
});

test('many writers can wait for a build log at the same time', async (t) => {
  const log = await openLog(await temporaryDirectory(t));
  const warnings: Error[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning);
  process.on('warning', onWarning);
  t.after(() => process.off('warning', onWarning));
  const held = Array.from({ length: 30 }, () => log.write('x'.repeat(100_000)) ?? []).flat();
  assert.ok(held.length > 10);
  await Promise.all(held);
  await log.close();
  assert.deepEqual(
    warnings.filter(({ name }) => name === 'MaxListenersExceededWarning'),
    [],
  );
});

test('a build log can be closed twice, and writes to a closed log do not wait', async (t) => {
  const logger = new RecordingLogger();
  const log = await openLog(await temporaryDirectory(t), { logger });
  const held = log.write('x'.repeat(1_000_000));
  const closed = log.close();
  assert.equal(log.write('while it is being closed'), undefined);
  await closed;
  await held;
  await log.close();
  assert.equal(log.write('too late'), undefined);
  assert.deepEqual(logger.lines, []);
});

test('the newest seven logs of an image name and all logs of other names are kept', async (t) => {
  const directory = await temporaryDirectory(t);
  for (let day = 1; day <= 9; day += 1) {
    const path = join(directory, `debian-old-${day}.log`);
    await writeFile(path, '# image-name: "debian"\n# image-id: x\n');
    await utimes(path, day * 86_400, day * 86_400);
  }
  const others = { 'fedora-1.log': '# image-name: "fedora"\n', 'x.log': '# image-name: {\n', 'y.log': '' };
  for (const [name, content] of Object.entries(others)) {
    await writeFile(join(directory, name), content);
    await utimes(join(directory, name), 1, 1);
  }
  await (await openLog(directory)).close();
  const newest = [4, 5, 6, 7, 8, 9].map((day) => `debian-old-${day}.log`);
  assert.deepEqual(
    (await readdir(directory)).toSorted(),
    ['debian-1.log', ...newest, ...Object.keys(others)].toSorted(),
  );
});

test('the number of build logs to keep can be chosen', async (t) => {
  const directory = await temporaryDirectory(t);
  for (const day of [1, 2, 3]) {
    const path = join(directory, `debian-old-${day}.log`);
    await writeFile(path, '# image-name: "debian"\n');
    await utimes(path, day * 86_400, day * 86_400);
  }
  await (await openLog(directory, { retention: 2 })).close();
  assert.deepEqual((await readdir(directory)).toSorted(), ['debian-1.log', 'debian-old-3.log']);
  await (await openLog(directory, { retention: 0 })).close();
  assert.deepEqual(await readdir(directory), ['debian-1.log'], 'never its own');
});

test('a build log that another process removes meanwhile causes no error', async (t) => {
  const directory = await temporaryDirectory(t);
  await symlink('removed', join(directory, 'debian-0.log')); // exists, but cannot be opened
  const logger = new RecordingLogger();
  const log = await openLog(directory, { logger });
  await log.write('line');
  await log.close();
  assert.equal(await readFile(log.path, 'utf8'), `${HEADER}line\n`);
  assert.deepEqual(logger.lines, []);
});

test('a full disk truncates the log with one warning, and the build continues', async (t) => {
  const directory = await mountTmpfs(t, 'size=64k');
  const logger = new RecordingLogger();
  const told: string[] = [];
  const log = await openLog(directory, { logger, onLine: (line) => told.push(line) });
  for (const line of ['x'.repeat(1_000_000), 'two', 'three']) await log.write(line);
  await log.close();
  assert.equal(logger.lines.length, 1);
  assert.match(logger.lines[0] ?? '', /^warn the build log ".*" is truncated: ENOSPC/);
  assert.deepEqual(told.slice(1), ['two', 'three']);
});

test('a symbolic link or FIFO in place of a build log is rejected', async (t) => {
  const directory = await temporaryDirectory(t);
  const path = join(directory, 'debian-1.log');
  await writeFile(join(directory, 'target'), '');
  await symlink('target', path);
  await assert.rejects(openLog(directory), /debian-1\.log" is a symbolic link; remove it$/);
  await rm(path);
  execFileSync('mkfifo', [path]);
  await assert.rejects(openLog(directory), /debian-1\.log" is not a regular file; remove it$/);
});

test('a FIFO among the build logs delays no build', async (t) => {
  const directory = await temporaryDirectory(t);
  execFileSync('mkfifo', [join(directory, 'other.log')]);
  const log = await openLog(directory);
  await log.close();
  assert.equal(await readFile(log.path, 'utf8'), HEADER);
});

test('a build log that cannot be opened causes an error', async (t) => {
  const directory = await temporaryDirectory(t);
  await mkdir(join(directory, 'debian-1.log'));
  await assert.rejects(openLog(directory), { code: 'EISDIR' });
});

test('a build log above its limit keeps its beginning and its end', async (t) => {
  const directory = await temporaryDirectory(t);
  const log = await openLog(directory, { limit: 100_000 });
  for (let index = 0; index < 100_000; index += 1) await log.write(`line ${index}`);
  await log.close();
  const text = await readFile(log.path, 'utf8');
  assert.ok(text.length <= 100_000);
  assert.ok(text.startsWith(`${HEADER}line 0\n`) && text.endsWith('\nline 99999\n'));
  assert.match(text, /^# \d+ bytes are missing here/m);
});

test('a build log escapes terminal sequences, and a text with line ends becomes several lines', async (t) => {
  const told: string[] = [];
  const log = await openLog(await temporaryDirectory(t), {
    onLine: (line) => told.push(line),
    secrets: ['horse\u001b[0m'],
  });
  await log.write('\u001b[2Jcleared horse\u001b[0m\nsecond');
  await log.close();
  assert.deepEqual(told, [String.raw`\x1b[2Jcleared ***`, 'second']);
  assert.equal(await readFile(log.path, 'utf8'), `${HEADER}${told.join('\n')}\n`);
});
