import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { Staging } from '../../src/repository/staging.ts';

test('a staging directory is removed with all its files', async (t) => {
  const parent = await temporaryDirectory(t);
  const staging = await Staging.create(parent);
  assert.match(basename(staging.directory), /^stage-\w+$/, 'a name that means nothing to a shell');
  await writeFile(staging.path('file'), 'content');
  await staging.clear();
  assert.deepEqual(await readdir(parent), []);
});

test('a staging directory’s temporary directories elsewhere are removed, also by another process', async (t) => {
  const [parent, elsewhere] = [await temporaryDirectory(t), await temporaryDirectory(t)];
  const staging = await Staging.create(parent);
  const temporary = await staging.temporaryDirectory(elsewhere);
  assert.equal(join(elsewhere, basename(temporary)), temporary);
  await writeFile(join(temporary, 'file'), 'content');
  await writeFile(join(elsewhere, 'of another'), 'content');
  await new Staging(staging.directory).clear();
  assert.deepEqual(await readdir(elsewhere), ['of another']);
});

test('a staging directory’s truncated record is ignored', async (t) => {
  const staging = await Staging.create(await temporaryDirectory(t));
  await writeFile(staging.path('.temporary-directories'), '"/no/such/directory"\n"/etc');
  await staging.clear();
});

test('a staging directory’s recorded process groups are ended, also by another process', async (t) => {
  const staging = await Staging.create(await temporaryDirectory(t));
  const child = spawn('sleep', ['600'], { detached: true, stdio: 'ignore', cwd: '/' });
  assert.ok(child.pid);
  staging.recordProcessGroup(child.pid);
  const exit = once(child, 'exit');
  await new Staging(staging.directory).clear();
  assert.deepEqual(await exit, [null, 'SIGTERM']);
});
