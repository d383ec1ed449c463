import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chown, link, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { writePidFile } from '../../src/commands/pid-file.ts';

let directory: string;
let path: string;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'pid-file-'));
  path = join(directory, 'nodepool-builder.pid');
});
after(() => rm(directory, { recursive: true }));

/** Starts a process that looks like this program, and writes its pid file. */
async function startOther(t: TestContext): Promise<ChildProcess> {
  const other = spawn('sh', ['-c', 'read line', basename(process.argv[1] ?? '')], {
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  await once(other, 'spawn');
  t.after(() => other.kill());
  await writeFile(path, `${other.pid}\n`);
  return other;
}

describe('the pid file', () => {
  it('the pid file names this process until it is removed', async () => {
    const remove = await writePidFile(path);
    assert.equal(await readFile(path, 'utf8'), `${process.pid}\n`);
    await remove();
    assert.equal(existsSync(path), false);
  });

  it('the pid file is replaced if it names a dead process or another program, or contains no number', async () => {
    for (const content of [String(spawnSync('true').pid), '1', 'nonsense']) {
      await writeFile(path, content);
      const remove = await writePidFile(path);
      assert.equal(await readFile(path, 'utf8'), `${process.pid}\n`);
      await remove();
    }
  });

  it('the pid file of a running builder prevents a second one from starting', async (t) => {
    const other = await startOther(t);
    await assert.rejects(
      writePidFile(path, 0),
      new RegExp(`is already running as process ${other.pid} .*stop it first`),
    );
    assert.equal(await readFile(path, 'utf8'), `${other.pid}\n`);
  });

  it('the pid file of a stopping builder is replaced once the builder has ended', async (t) => {
    const other = await startOther(t);
    const written = writePidFile(path);
    other.kill();
    const remove = await written;
    assert.equal(await readFile(path, 'utf8'), `${process.pid}\n`);
    await remove();
  });

  it('the pid file is writable by its owner only, whatever the umask', async (t) => {
    const umask = process.umask(0);
    t.after(() => process.umask(umask));
    for (const stale of [false, true]) {
      // A file written by python-daemon with its umask of 0.
      if (stale) await writeFile(path, '999999999\n', { mode: 0o666 });
      const remove = await writePidFile(path);
      assert.equal((await stat(path)).mode & 0o777, 0o644);
      await remove();
    }
  });

  it('the pid file is rejected as a symbolic link, whose target keeps its content', async () => {
    const target = join(directory, 'target');
    await writeFile(target, 'content', { mode: 0o600 });
    await symlink(target, path);
    await assert.rejects(writePidFile(path), /nodepool-builder\.pid" is a symbolic link; remove it$/);
    assert.equal(await readFile(target, 'utf8'), 'content');
    assert.equal((await stat(target)).mode & 0o777, 0o600);
    await rm(path);
  });

  it('the pid file is rejected as a hard link, whose other name keeps its content', async () => {
    const target = join(directory, 'named-twice');
    await writeFile(target, 'content');
    await link(target, path);
    await assert.rejects(writePidFile(path), /has a second name, .*; remove it$/);
    assert.equal(await readFile(target, 'utf8'), 'content');
    await rm(path);
  });

  it('the pid file is rejected as a FIFO, without waiting for a reader', async () => {
    execFileSync('mkfifo', [path]);
    await assert.rejects(writePidFile(path), /is not a regular file; remove it$/);
    await rm(path);
  });

  it('the pid file is rejected if another user owns it', {
    skip: process.geteuid?.() !== 0 && 'needs root',
  }, async () => {
    await writeFile(path, '');
    await chown(path, 65534, 65534);
    await assert.rejects(writePidFile(path), /belongs to user 65534; remove it$/);
    await rm(path);
  });

  it('the pid file in a missing directory causes an error that says what to do', async () => {
    await assert.rejects(
      writePidFile(join(directory, 'missing', 'pid')),
      /cannot write the pid file: ENOENT.*create its directory/,
    );
  });
});
