import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, readdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { openStateStore } from '@nodepool-builder/image-manager';
import { temporaryDirectory } from '../../../test/fixtures/scratch-directory.ts';

const BIN = join(import.meta.dirname, '../bin/nodepool-builder.js');

test('a command that opens the SQLite store prints its list, and no warning from Node.js', async (t) => {
  const directory = temporaryDirectory(t);
  const config = join(directory, 'nodepool.yaml');
  await writeFile(config, 'images-dir: images\nmanager: {store: manager.sqlite}\n');
  const store = await openStateStore(join(directory, 'manager.sqlite'));
  await store.close();
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [
    BIN,
    'dib-image-list',
    '-c',
    config,
  ]);
  assert.deepEqual([stdout, stderr], ['', 'there is nothing to list\n']);
});

test('a command on an old Node.js names the release that it needs in its first line', async () => {
  const versions = `Object.defineProperty(process, 'versions', { value: { node: '20.19.0' } })`;
  const args = ['--import', `data:text/javascript,${versions}`, BIN, '--help'];
  await assert.rejects(promisify(execFile)(process.execPath, args), {
    code: 1,
    stdout: '',
    stderr: /^nodepool-builder needs Node\.js 22\.18 or later, but this is 20\.19\.0; install a later one\n$/,
  });
});

test('a command caches compiled code in its package, and runs without a message where it cannot', async (t) => {
  for (const isWritable of [true, false]) {
    const directory = temporaryDirectory(t);
    for (const part of ['bin', 'package.json']) {
      await cp(join(BIN, '../..', part), join(directory, part), { recursive: true });
    }
    await symlink(join(BIN, '../../dist'), join(directory, 'dist'));
    const cache = join(directory, '.cache');
    if (!isWritable) await writeFile(cache, ''); // a mode would not stop root
    const command = [join(directory, 'bin/nodepool-builder.js'), 'help', 'plan'];
    const { NODE_COMPILE_CACHE: _, ...env } = process.env; // of the whole test run
    const { stdout, stderr } = await promisify(execFile)(process.execPath, command, { env });
    assert.match(stdout, /Usage: nodepool-builder plan/);
    assert.equal(stderr, '');
    if (isWritable) assert.notDeepEqual(await readdir(cache), []);
  }
});
