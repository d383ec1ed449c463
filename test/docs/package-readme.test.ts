import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { startGearmand } from '../fixtures/gearmand.ts';
import { codeBlocks, ROOT, readPage } from './markdown.ts';

test('the program in the README of the package nodepool-builder serves, and tells of an image', async (t) => {
  const server = await startGearmand();
  t.after(() => server.stop());
  const directory = await mkdtemp(join(tmpdir(), 'program-'));
  t.after(() => rm(directory, { recursive: true }));
  await mkdir(join(directory, 'images'));
  await symlink(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
  const servers = `[{host: 127.0.0.1, port: ${server.port}}]`;
  await writeFile(join(directory, 'nodepool.yaml'), `images-dir: images\ngearman-servers: ${servers}\n`);
  const [program = ''] = codeBlocks(await readPage('packages/nodepool-builder/README.md'), 'ts');
  await writeFile(join(directory, 'program.mts'), `${program}\nconsole.log('serving');\n`);

  const child = spawn(
    process.execPath,
    ['--conditions=@nodepool-builder/source', '--disable-warning=ExperimentalWarning', 'program.mts'],
    { cwd: directory, stdio: ['ignore', 'pipe', 'inherit'] },
  );
  t.after(() => child.kill('SIGKILL'));
  for await (const line of createInterface(child.stdout)) {
    if (line === 'serving') {
      await writeFile(join(directory, 'debian-1.raw'), 'an image');
      await rename(join(directory, 'debian-1.raw'), join(directory, 'images/debian-1.raw'));
    }
    if (line === 'image debian-1 can be uploaded') break;
  }
  child.kill('SIGTERM');
  assert.deepEqual(await once(child, 'exit'), [0, null]);
});
