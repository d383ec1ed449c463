import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { ExampleProject } from '../fixtures/example-project.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { nodepoolBuilderShell } from '../fixtures/nodepool-builder-shell.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';
import { codeBlocks, ROOT, readPage } from './markdown.ts';

const page = await readPage('docs/writing-a-builder.md');
const [builder = '', program = '', plugin = '', contract = ''] = codeBlocks(page, 'ts');
const [session = '', build = ''] = codeBlocks(page, 'sh');
const [configuration = '', pluginConfiguration = ''] = codeBlocks(page, 'yaml');

test('the builder in docs/writing-a-builder.md serves, and passes the contract tests', async (t) => {
  const server = await startGearmand();
  undoAfter(t, () => server.stop());
  const directory = await mkdtemp(join(tmpdir(), 'docs-builder-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  const file = (name: string): string => join(directory, name);
  await Promise.all(['bin', 'images', 'pool'].map((name) => mkdir(file(name))));
  await symlink(join(ROOT, 'node_modules'), file('node_modules'));
  await writeFile(file('package.json'), '{"type": "module"}');
  await writeFile(file('tree-builder.ts'), builder);
  await writeFile(file('builder.ts'), program);
  await writeFile(file('contract.test.ts'), contract);
  const servers = `gearman-servers: [{host: 127.0.0.1, port: ${server.port}}]`;
  await writeFile(file('nodepool.yaml'), `${configuration}${servers}\n`);
  const options = '--conditions=@nodepool-builder/source --disable-warning=ExperimentalWarning';
  await writeFile(file('bin/node'), `#!/bin/sh\nexec '${process.execPath}' ${options} "$@"\n`, {
    mode: 0o755,
  });
  const { NODE_TEST_CONTEXT: _, ...inherited } = process.env;
  const env = { ...inherited, PATH: `${file('bin')}:${process.env.PATH}` };
  const shell = async (script: string): Promise<string> =>
    (await promisify(execFile)('sh', ['-euc', script], { cwd: directory, env })).stdout;
  undoAfter(t, async () => {
    const pid = Number(await readFile(file('builder.pid'), 'utf8').catch(() => '0'));
    if (pid > 0) process.kill(pid, 'SIGTERM');
  });

  assert.match(await shell(session), /nodepool\.yaml is valid: 1 disk image, 1 provider\n/);
  assert.equal((await readdir(file('pool'))).filter((name) => name.endsWith('.qcow2')).length, 2);
  await waitUntil('the builder to end', () => !existsSync(file('builder.pid')));
  assert.match(await shell('node --test --test-reporter=tap contract.test.ts'), /^# fail 0$/m);
});

test('nodepool-builder builds with the plugin in docs/writing-a-builder.md', async (t) => {
  const project = await ExampleProject.create(t);
  await project.write('tree-builder.ts', builder);
  await project.write('tree.ts', plugin);
  await project.write('nodepool.yaml', `images-dir: images\n${pluginConfiguration}`);
  await project.checkTypes();
  const shell = await nodepoolBuilderShell(project.directory);
  const path = (await shell(build)).trim();
  assert.match(path, /\/built\/skel-[\w-]+\.raw$/);
  assert.equal((await stat(path)).size, 64 * 2 ** 20);
});
