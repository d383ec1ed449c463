import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
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
  it('names this process until it is removed', async () => {
    const remove = await writePidFile(path);
    assert.equal(await readFile(path, 'utf8'), `${process.pid}\n`);
    await remove();
    assert.equal(existsSync(path), false);
  });

  it('is replaced if it names a dead process or another program, or holds no number', async () => {
    for (const content of [String(spawnSync('true').pid), '1', 'nonsense']) {
      await writeFile(path, content);
      const remove = await writePidFile(path);
      assert.equal(await readFile(path, 'utf8'), `${process.pid}\n`);
      await remove();
    }
  });

  it('of a running builder prevents a second one from starting', async (t) => {
    const other = await startOther(t);
    await assert.rejects(
      writePidFile(path, 0),
      new RegExp(`is already running as process ${other.pid} .*stop it first`),
    );
    assert.equal(await readFile(path, 'utf8'), `${other.pid}\n`);
  });

  it('of a builder that is stopping is replaced once the builder has ended', async (t) => {
    const other = await startOther(t);
    const written = writePidFile(path);
    other.kill();
    const remove = await written;
    assert.equal(await readFile(path, 'utf8'), `${process.pid}\n`);
    await remove();
  });

  it('is writable by its owner only, whatever the umask', async (t) => {
    const umask = process.umask(0);
    t.after(() => process.umask(umask));
    for (const stale of [false, true]) {
      // A file of python-daemon, with its umask of 0.
      if (stale) await writeFile(path, '999999999\n', { mode: 0o666 });
      const remove = await writePidFile(path);
      assert.equal((await stat(path)).mode & 0o777, 0o644);
      await remove();
    }
  });

  it('in a missing directory is an error with a remedy', async () => {
    await assert.rejects(
      writePidFile(join(directory, 'missing', 'pid')),
      /cannot be written: ENOENT.*make its directory/,
    );
  });
});
