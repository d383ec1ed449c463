import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ExampleProject } from '../../packages/image-builder/test/example-project.ts';
import { codeBlocks, readPage } from './markdown.ts';

const [provider = '', contract = ''] = codeBlocks(await readPage('docs/writing-a-provider.md'), 'ts');

test('docs/writing-a-provider.md: the provider passes the contract tests', async (t) => {
  const project = await ExampleProject.create(t);
  await project.write('folder-provider.ts', provider);
  await project.write('contract.ts', contract);
  assert.match(await project.run('contract.ts'), /^ℹ fail 0$/m);
  await project.checkTypes();
});
