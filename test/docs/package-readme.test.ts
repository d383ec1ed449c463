import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { startBuilder } from '../fixtures/builder-process.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { codeBlocks, ROOT, readPage } from './markdown.ts';

test('the program in packages/nodepool-builder/README.md serves and reports an image', async (t) => {
  const server = await startGearmand();
  undoAfter(t, () => server.stop());
  const directory = await mkdtemp(join(tmpdir(), 'program-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
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
  undoAfter(t, () => child.kill('SIGKILL'));
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

test('the program in packages/image-manager/README.md builds and uploads an image', async (t) => {
  const server = await startGearmand();
  undoAfter(t, () => server.stop());
  const directory = await mkdtemp(join(tmpdir(), 'program-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  await Promise.all(['images', 'pool'].map((name) => mkdir(join(directory, name))));
  await symlink(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
  await writeFile(
    join(directory, 'nodepool.yaml'),
    `images-dir: images
gearman-servers: [{host: 127.0.0.1, port: ${server.port}}]
diskimages: [{name: docs, builder: directory-tree, options: {tree: ${import.meta.dirname}}}]
providers: [{name: pool, type: directory, directory: pool, images: [{name: docs, diskimage: docs}]}]
`,
  );
  const builder = await startBuilder(join(directory, 'nodepool.yaml'));
  undoAfter(t, () => builder.end('SIGKILL'));
  const [program = ''] = codeBlocks(await readPage('packages/image-manager/README.md'), 'ts');
  await writeFile(join(directory, 'program.mts'), program.replace('4730', String(server.port)));

  const child = spawn(
    process.execPath,
    ['--conditions=@nodepool-builder/source', '--disable-warning=ExperimentalWarning', 'program.mts'],
    { cwd: directory, stdio: ['ignore', 'pipe', 'inherit'] },
  );
  undoAfter(t, () => child.kill('SIGKILL'));
  for await (const line of createInterface(child.stdout)) {
    if (/upload \S+ of docs-0000000001-\w+ to pool is ready/.test(line)) break;
  }
  assert.equal((await readdir(join(directory, 'pool'))).filter((name) => name.endsWith('.json')).length, 1);
  child.kill('SIGTERM');
  assert.deepEqual(await once(child, 'exit'), [0, null]);
});

test('the program in packages/provenance/README.md attests an upload and follows its chain', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'program-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  await symlink(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
  const [program = ''] = codeBlocks(await readPage('packages/provenance/README.md'), 'ts');
  await writeFile(join(directory, 'program.mts'), program);
  const run = (command: string, ...args: readonly string[]): string =>
    execFileSync(command, args, { cwd: directory, encoding: 'utf8' });
  const [create, publish] = [...program.matchAll(/openssl (\w+)(.*)/g)];
  run('openssl', create?.[1] ?? '', ...(create?.[2] ?? '').trim().split(' '), '-out', 'attestation.pem');
  const options = ['-in', 'attestation.pem', '-out', 'attestation.pub'];
  run('openssl', publish?.[1] ?? '', ...(publish?.[2] ?? '').trim().split(' '), ...options);
  const output = run(process.execPath, '--conditions=@nodepool-builder/source', 'program.mts');
  const lines = output.trimEnd().split('\n');
  assert.match(
    lines[0] ?? '',
    /^proven upload image 7d1f of provider cloud debian-1\.qcow2 was uploaded on /,
  );
  assert.match(lines[1] ?? '', /^unproven file debian-1\.qcow2 no attestation of a build or conversion /);
  assert.deepEqual(lines.slice(2), ['unproven']);
});
