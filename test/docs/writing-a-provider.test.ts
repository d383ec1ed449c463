import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { ExampleProject } from '../fixtures/example-project.ts';
import { nodepoolBuilderShell } from '../fixtures/nodepool-builder-shell.ts';
import { codeBlocks, readPage } from './markdown.ts';

const page = await readPage('docs/writing-a-provider.md');
const [provider = '', contract = ''] = codeBlocks(page, 'ts');
const [configuration = ''] = codeBlocks(page, 'yaml');
const [commands = ''] = codeBlocks(page, 'sh');

test('docs/writing-a-provider.md shows the files of examples/plugin-provider', async () => {
  const example = join(import.meta.dirname, '../../examples/plugin-provider');
  assert.equal(provider, await readFile(join(example, 'folder-provider.ts'), 'utf8'));
  assert.equal(contract, await readFile(join(example, 'contract.test.ts'), 'utf8'));
});

test('nodepool-builder uploads with the plugin in docs/writing-a-provider.md', async (t) => {
  const project = await ExampleProject.create(t);
  await project.makeDirectory('images');
  await project.write('folder-provider.ts', provider);
  await project.write(
    'nodepool.yaml',
    `images-dir: images\ndiskimages: [{name: debian}]\n${configuration.replace('/srv/images', 'images')}`,
  );
  const shell = await nodepoolBuilderShell(project.directory);
  const [uploaded, latest] = (await shell(`qemu-img create -q -f qcow2 debian.qcow2 1M\n${commands}`))
    .trim()
    .split('\n');
  assert.equal(latest, uploaded);
  assert.ok((await readdir(join(project.directory, 'images'))).includes(`${uploaded}.json`));
});
