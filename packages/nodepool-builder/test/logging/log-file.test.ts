import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { LogFile } from '../../src/logging/log-file.ts';

const read = (path: string): string => readFileSync(path, 'utf8');

const OF_ANOTHER_USER = { skip: process.geteuid?.() !== 0 && 'needs root' };

describe('a log file', () => {
  it('a log file is continued or truncated at a start', (t) => {
    const filename = join(temporaryDirectory(t), 'b.log');
    for (const [truncate, content] of [
      [false, 'one\n'],
      [false, 'one\none\n'],
      [true, 'one\n'],
    ] as const) {
      const file = new LogFile({ type: 'file', filename, truncate });
      file.write('one\n');
      file.destroy();
      assert.equal(read(filename), content);
    }
  });

  it('a log file is rotated before it exceeds its size, and the newest old files are kept', (t) => {
    const filename = join(temporaryDirectory(t), 'b.log');
    const rotation = { by: 'size' as const, maxBytes: 10, backups: 2 };
    const file = new LogFile({ type: 'file', filename, rotation });
    t.after(() => file.destroy());
    for (const line of ['1234\n', '567\n', 'é8\n', '90\n', 'a line that is longer than all\n'])
      file.write(line);
    assert.deepEqual([filename, `${filename}.1`, `${filename}.2`].map(read), [
      'a line that is longer than all\n',
      'é8\n90\n',
      '1234\n567\n',
    ]);
    file.write('x\n');
    assert.equal(read(`${filename}.2`), 'é8\n90\n');
    assert.equal(existsSync(`${filename}.3`), false);
  });

  it('a log file is not written through another user’s symbolic link or to a FIFO', OF_ANOTHER_USER, (t) => {
    const directory = temporaryDirectory(t);
    const [filename, target] = [join(directory, 'b.log'), join(directory, 'target')];
    writeFileSync(target, 'content\n');
    chownSync(directory, 65534, 65534);
    symlinkSync(target, filename);
    assert.throws(() => new LogFile({ type: 'file', filename, truncate: true }), { code: 'ELOOP' });
    assert.equal(read(target), 'content\n');
    rmSync(filename);
    execFileSync('mkfifo', [filename]);
    assert.throws(() => new LogFile({ type: 'file', filename }), { code: 'ENXIO' });
  });

  it('a log file may be a symbolic link where only this user writes', (t) => {
    const directory = temporaryDirectory(t);
    const [filename, target] = [join(directory, 'b.log'), join(directory, 'target')];
    symlinkSync(target, filename);
    const file = new LogFile({ type: 'file', filename });
    file.write('one\n');
    file.destroy();
    assert.equal(read(target), 'one\n');
  });

  it('a log file is writable only by its owner, whatever the umask', (t) => {
    const umask = process.umask(0);
    t.after(() => process.umask(umask));
    const filename = join(temporaryDirectory(t), 'b.log');
    const rotation = { by: 'size' as const, maxBytes: 10, backups: 1 };
    const modes = [0o644, 0o600, 0o666].map((mode) => {
      writeFileSync(filename, 'from before\n');
      chmodSync(filename, mode);
      const file = new LogFile({ type: 'file', filename, rotation });
      const opened = statSync(filename).mode & 0o777;
      file.write('a line\n');
      file.destroy();
      return [opened, statSync(filename).mode & 0o777];
    });
    assert.deepEqual(modes, [
      [0o644, 0o644],
      [0o600, 0o644],
      [0o644, 0o644],
    ]);
  });

  it('a log file is reopened after it was moved only if it is watched', (t) => {
    for (const watched of [true, false]) {
      const filename = join(temporaryDirectory(t), 'b.log');
      const file = new LogFile({ type: 'file', filename, watched });
      t.after(() => file.destroy());
      file.write('old\n');
      renameSync(filename, `${filename}.1`);
      file.write('new\n');
      assert.equal(existsSync(filename), watched);
      assert.equal(read(`${filename}.1`), watched ? 'old\n' : 'old\nnew\n');
      writeFileSync(`${filename}.other`, '');
      renameSync(`${filename}.other`, filename);
      file.write('newer\n');
      assert.equal(read(filename), watched ? 'newer\n' : '');
    }
  });
});
