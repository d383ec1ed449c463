import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { codeBlocks, readPage } from '../../../test/docs/markdown.ts';
import { ExampleProject } from '../../image-builder/test/example-project.ts';
import { IMAGE_PROVIDERS } from '../src/index.ts';

const readme = await readPage('packages/image-providers/README.md');
const [program = '', contract = ''] = codeBlocks(readme, 'ts');

/** A cloud for the contract that the README shows. */
const MY_CLOUD = `
import { FakeImageProvider } from '@nodepool-builder/image-builder/testing';

export class MyCloud extends FakeImageProvider {}
`;

test('the program uploads each image, and the contract passes', async (t) => {
  const project = await ExampleProject.create(t);
  for (const name of ['images', 'pool']) await project.makeDirectory(name);
  await project.write('images/debian-1.qcow2', 'content');
  await project.write('program.ts', program);
  await project.write('my-cloud.ts', MY_CLOUD);
  await project.write('contract.ts', contract);
  assert.equal(await project.run('program.ts'), 'debian-debian-1.qcow2\n');
  assert.deepEqual((await readdir(join(project.directory, 'pool'))).toSorted(), [
    'debian-debian-1.qcow2',
    'debian-debian-1.qcow2.json',
    'debian-latest.qcow2',
  ]);
  assert.match(await project.run('contract.ts'), /^ℹ fail 0$/m);
  await project.checkTypes();
});

test('the table has each provider', () => {
  for (const type of Object.keys(IMAGE_PROVIDERS))
    assert.match(readme, new RegExp(`^\\| \`${type}\` \\|`, 'm'));
});
